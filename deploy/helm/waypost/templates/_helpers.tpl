{{- define "waypost.name" -}}
{{ .Values.nameOverride | default .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "waypost.selector" -}}
app.kubernetes.io/name: waypost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "waypost.labels" -}}
{{ include "waypost.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Seconds of a drain, and what a pod is given beyond it: for leaving the load balancer before, and ending after. */}}
{{- define "waypost.grace" -}}
{{ add (int (ceil (dig "drain_timeout_s" 20 .Values.config))) 25 }}
{{- end }}

{{- define "waypost.scheme" -}}
{{ if dig "rest" "tls" nil .Values.config }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "waypost.configuration" -}}
{{ toYaml (merge (dict "listen" "0.0.0.0:8080") .Values.config) }}
{{- end }}

{{- define "waypost.pod" -}}
{{- $ := index . 0 }}{{- $name := index . 1 }}{{- $process := index . 2 -}}
metadata:
  labels:
    {{- include "waypost.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
    {{- with $process.serves }}
    waypost/serves: {{ . }}
    {{- end }}
  annotations:
    checksum/configuration: {{ include "waypost.configuration" $ | sha256sum }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "waypost.grace" $ }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  {{- with $.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not $process.stateful }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "waypost.selector" $ | nindent 10 }}
          app.kubernetes.io/component: {{ $name }}
  {{- end }}
  containers:
    - name: waypost
      image: {{ $.Values.image.repository }}{{ if $.Values.image.digest }}@{{ $.Values.image.digest }}{{ else }}:{{ $.Values.image.tag }}{{ end }}
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      args:
        - serve
        - --config=/etc/waypost/waypost.yaml
        - --workers={{ $process.workers | default 2 }}
        {{- with $process.roles }}
        - --roles={{ join "," . }}
        {{- end }}
      ports:
        - { name: http, containerPort: 8080 }
      {{- with $.Values.secrets.environment }}
      envFrom:
        {{- range . }}
        - secretRef: { name: {{ . }} }
        {{- end }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      # A pod that starts may wait for its database; one that lives but cannot serve is left to itself, without requests.
      startupProbe:
        httpGet: { path: /health/live, port: http, scheme: {{ include "waypost.scheme" $ }} }
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: { path: /health/live, port: http, scheme: {{ include "waypost.scheme" $ }} }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /health/ready, port: http, scheme: {{ include "waypost.scheme" $ }} }
        periodSeconds: 5
        timeoutSeconds: 4
      lifecycle:
        preStop:
          exec: { command: [sleep, "5"] } # load balancers hear that it leaves before it refuses anybody
      {{- with $process.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - { name: state, mountPath: /var/lib/waypost }
        - { name: tmp, mountPath: /tmp }
        - { name: configuration, mountPath: /etc/waypost/waypost.yaml, subPath: waypost.yaml, readOnly: true }
        {{- if $.Values.secrets.files }}
        - { name: credentials, mountPath: /etc/waypost/credentials, readOnly: true }
        {{- end }}
  volumes:
    {{- if not $process.stateful }}
    - { name: state, emptyDir: {} }
    {{- end }}
    - { name: tmp, emptyDir: {} }
    - name: configuration
      configMap: { name: {{ include "waypost.name" $ }} }
    {{- if $.Values.secrets.files }}
    - name: credentials
      secret: { secretName: {{ $.Values.secrets.files }}, defaultMode: 288 } # 0440
    {{- end }}
{{- end }}
