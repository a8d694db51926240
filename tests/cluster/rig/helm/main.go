// Renders a chart with Helm's own engine: `helm template` without the rest of Helm.
//
// Usage: helm-render CHART RELEASE NAMESPACE < values.json
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := render(os.Args[1], os.Args[2], os.Args[3], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder, release, namespace string, given io.Reader) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	values := map[string]interface{}{}
	if err := json.NewDecoder(given).Decode(&values); err != nil {
		return err
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	// This checks the values against the chart's values.schema.json, too.
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	// Strict: a value that nobody defined is an error here, not an empty text.
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return err
	}
	for _, crd := range chart.CRDObjects() {
		fmt.Printf("---\n%s\n", crd.File.Data)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if path.Ext(name) == ".yaml" && strings.TrimSpace(files[name]) != "" {
			fmt.Printf("---\n%s\n", files[name])
		}
	}
	return nil
}
