// The original's work as a Go program: choose a channel by the id in the User-Agent, find the file
// of the version in the path, and answer with it. With -prebuilt the bytes are made at the start;
// without, every request decodes and encodes them again, as the original does.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"math/bits"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type rule struct {
	Conditions         []any `json:"conditions,omitempty"`
	GatheringFunctions any   `json:"gathering_functions,omitempty"`
}

type containerLog struct {
	Namespace    string   `json:"namespace"`
	PodNameRegex string   `json:"pod_name_regex"`
	Previous     bool     `json:"previous,omitempty"`
	Messages     []string `json:"messages"`
}

type configuration struct {
	Rules   []rule         `json:"conditional_gathering_rules"`
	Logs    []containerLog `json:"container_logs"`
	Version string         `json:"version"`
}

type entry struct {
	major, minor, patch int
	raw, built          []byte
}

func murmur3(key string) uint32 {
	var hash uint32
	data, whole := []byte(key), len(key)/4
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	for i := 0; i < whole; i++ {
		k := uint32(data[i*4]) | uint32(data[i*4+1])<<8 | uint32(data[i*4+2])<<16 | uint32(data[i*4+3])<<24
		hash = bits.RotateLeft32(hash^mix(k), 13)*5 + 0xe6546b64
	}
	var tail uint32
	for i := len(data) - 1; i >= whole*4; i-- {
		tail = tail<<8 | uint32(data[i])
	}
	hash ^= mix(tail)
	hash ^= uint32(len(data))
	hash = (hash ^ hash>>16) * 0x85ebca6b
	hash = (hash ^ hash>>13) * 0xc2b2ae35
	return hash ^ hash>>16
}

func cluster(agent string) string {
	_, rest, found := strings.Cut(agent, "cluster/")
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, " ")
	rest, _, _ = strings.Cut(rest, ",")
	return rest
}

func parse(version string) (parts [3]int, ok bool) {
	words := strings.SplitN(version, ".", 3)
	if len(words) != 3 {
		return parts, false
	}
	for i, word := range words {
		number, err := strconv.Atoi(strings.TrimSuffix(word, "-0"))
		if err != nil {
			return parts, false
		}
		parts[i] = number
	}
	return parts, true
}

func below(e entry, v [3]int) bool {
	if e.major != v[0] {
		return e.major < v[0]
	}
	if e.minor != v[1] {
		return e.minor < v[1]
	}
	return e.patch <= v[2]
}

func load(folder string) []entry {
	var rows [][2]string
	read(filepath.Join(folder, "cluster_version_mapping.json"), &rows)
	var entries []entry
	for _, row := range rows {
		v, _ := parse(row[0])
		raw, err := os.ReadFile(filepath.Join(folder, row[1]))
		if err != nil {
			log.Fatal(err)
		}
		entries = append(entries, entry{v[0], v[1], v[2], raw, encoded(raw)})
	}
	return entries
}

func read(file string, into any) {
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func encoded(raw []byte) []byte {
	var found configuration
	if err := json.Unmarshal(raw, &found); err != nil {
		log.Fatal(err)
	}
	made, err := json.Marshal(found)
	if err != nil {
		log.Fatal(err)
	}
	return made
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "")
	salt := flag.String("salt", "", "")
	share := flag.Uint("share", 0, "in hundredths of a percent")
	prebuilt := flag.Bool("prebuilt", false, "")
	flag.Parse()
	channels := [2][]entry{load(flag.Arg(0)), load(flag.Arg(1))}
	http.HandleFunc("GET /api/gathering/v2/{version}/gathering_rules", func(w http.ResponseWriter, r *http.Request) {
		version, ok := parse(r.PathValue("version"))
		if !ok {
			http.Error(w, `{"status":"bad version"}`, http.StatusBadRequest)
			return
		}
		entries := channels[0]
		id := cluster(r.UserAgent())
		if id != "" && uint(murmur3(*salt+":"+id)%10000+1) <= *share {
			entries = channels[1]
		}
		at := len(entries) - 1
		for at >= 0 && !below(entries[at], version) {
			at--
		}
		if at < 0 {
			http.Error(w, `{"status":"too low"}`, http.StatusNotFound)
			return
		}
		body := entries[at].built
		if !*prebuilt {
			body = encoded(entries[at].raw)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
