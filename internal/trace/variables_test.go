package trace

import (
	"strings"
	"testing"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{ // part of the error; empty: none
		"":                           "",
		"OTEL_SDK_DISABLED=true":     "",
		"OTEL_TRACES_EXPORTER=none":  "",
		"OTEL_SERVICE_NAME=fleet":    "",
		"OTEL_TRACES_SAMPLER=always": "OTEL_TRACES_SAMPLER",
		"OTEL_TRACES_SAMPLER=parentbased_always_on":                                         "",
		"OTEL_TRACES_SAMPLER=traceidratio":                                                  "OTEL_TRACES_SAMPLER",
		"OTEL_TRACES_SAMPLER=parentbased_always_off":                                        "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318":                                        "OTEL_EXPORTER_OTLP_ENDPOINT is not an address",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://collector":                                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                                                  `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported`,
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf": "",
		"OTEL_EXPORTER_OTLP_HEADERS=a-secret":                                               "OTEL_EXPORTER_OTLP_HEADERS is not a list",
		"OTEL_EXPORTER_OTLP_HEADERS=a=%zz":                                                  "OTEL_EXPORTER_OTLP_HEADERS is not a list",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip":                                               "",
		"OTEL_EXPORTER_OTLP_TIMEOUT=5s":                                                     "OTEL_EXPORTER_OTLP_TIMEOUT",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such/file":                                      "OTEL_EXPORTER_OTLP_CERTIFICATE: open",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=/no/such/file":                                       "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
		"OTEL_RESOURCE_ATTRIBUTES=a":                                                        "OTEL_RESOURCE_ATTRIBUTES",
	} {
		_, err := parse(strings.Fields(env))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) || err != nil && strings.Contains(err.Error(), "a-secret") {
			t.Errorf("%s: %v", env, err)
		}
	}
	for env, want := range map[string]string{
		"": "http://localhost:4318/v1/traces",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://c.example/otlp/":     "https://c.example/otlp/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c.example/in": "https://c.example/in",
	} {
		if s, err := parse(strings.Fields(env)); err != nil || s.address != want {
			t.Errorf("%s: %q, %v", env, s.address, err)
		}
	}
	for env, want := range map[string]bool{"OTEL_SDK_DISABLED=TRUE": true, "OTEL_TRACES_EXPORTER=none": true, "OTEL_SDK_DISABLED=false": false} {
		if s, err := parse([]string{env}); err != nil || s.disabled != want {
			t.Errorf("%s: %t, %v", env, s.disabled, err)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add("a=1,b=%20")
	f.Fuzz(func(t *testing.T, s string) {
		pairs, err := list(s)
		for _, p := range pairs {
			if err != nil || p[0] == "" {
				t.Errorf("%q, %v", p, err)
			}
		}
	})
}
