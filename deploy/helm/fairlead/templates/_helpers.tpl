{{- define "fairlead.selector" -}}
app.kubernetes.io/name: {{ .Values.name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The namespace that is looked after; empty for all of them. */ -}}
{{- define "fairlead.watched" -}}
{{- if not .Values.allNamespaces }}{{ .Values.watchNamespace | default .Release.Namespace }}{{ end -}}
{{- end }}

{{- define "fairlead.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* One lease for each shard; a single operator's is called as it is. */ -}}
{{- define "fairlead.leases" -}}
{{- $name := .Values.name }}
{{- $shards := int .Values.shards }}
{{- range $index := until $shards }}
- {{ if eq $shards 1 }}{{ $name }}{{ else }}{{ $name }}-{{ $index }}-of-{{ $shards }}{{ end }}
{{- end }}
{{- end }}

{{- define "fairlead.subject" -}}
- kind: ServiceAccount
  name: {{ .Values.name }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* Written by `make manifests` from the kinds that this version serves. */ -}}
{{- define "fairlead.rules" -}}
{{- $kept := list }}
{{- range (.Files.Get "files/rules.yaml" | fromYaml).rules }}
{{- if or $.Values.secrets (not (has "secrets" .resources)) }}
{{- $kept = append $kept . }}
{{- end }}
{{- end }}
{{ $kept | toYaml }}
{{- end }}
