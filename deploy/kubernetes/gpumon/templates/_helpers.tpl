{{- define "gpumon.name" -}}
{{- if contains "gpumon" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-gpumon" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gpumon.selector" -}}
app.kubernetes.io/name: gpumon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpumon.labels" -}}
{{ include "gpumon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gpumon.secret" -}}
{{ .Values.secret.existing | default (include "gpumon.name" .) }}
{{- end }}
