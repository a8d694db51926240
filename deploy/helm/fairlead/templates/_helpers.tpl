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

{{- define "fairlead.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "fairlead.subject" -}}
- kind: ServiceAccount
  name: {{ .Values.name }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* Written by `make manifests` from the kinds that this version serves. */ -}}
{{- define "fairlead.rules" -}}
{{ (.Files.Get "files/rules.yaml" | fromYaml).rules | toYaml }}
{{- end }}
