package trace

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// settings are the values of the standard variables.
type settings struct {
	disabled bool
	address  string
	header   http.Header
	timeout  time.Duration
	client   *http.Client
	resource map[string]any // attributes of the sender
}

// HeaderVariables returns the names of variables that may contain credentials for the collector. Only ralph may see them.
func HeaderVariables() []string {
	return []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}
}

// Secrets returns the values of the headers in the variables.
func Secrets(env []string) (values []string) {
	v := variablesOf(env)
	for _, name := range HeaderVariables() {
		headers, _ := list(v[name])
		for _, h := range headers {
			values = append(values, h[1])
			if _, token, ok := strings.Cut(h[1], " "); ok { // the part after the scheme, such as Bearer
				values = append(values, token)
			}
		}
	}
	return values
}

// variables are the OTEL_* variables of an environment by name.
type variables map[string]string

func variablesOf(env []string) variables {
	v := variables{}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "OTEL_") {
			v[name] = strings.TrimSpace(value)
		}
	}
	return v
}

// exporter returns the variable for traces if it is set, otherwise the one for all signals, and its value.
func (v variables) exporter(name string) (variable, value string) {
	if own := "OTEL_EXPORTER_OTLP_TRACES_" + name; v[own] != "" {
		return own, v[own]
	}
	return "OTEL_EXPORTER_OTLP_" + name, v["OTEL_EXPORTER_OTLP_"+name]
}

// parse reads the variables. An error names the variable and never contains a header's value.
func parse(env []string) (s settings, err error) {
	v := variablesOf(env)
	sampler := strings.TrimPrefix(v["OTEL_TRACES_SAMPLER"], "parentbased_") // a run has no parent span
	if s.disabled = strings.EqualFold(v["OTEL_SDK_DISABLED"], "true") || v["OTEL_TRACES_EXPORTER"] == "none" || sampler == "always_off"; s.disabled {
		return s, nil
	}
	if sampler != "" && sampler != "always_on" {
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not supported; always_on and always_off are", sampler)
	}
	pairs, err := list(v["OTEL_RESOURCE_ATTRIBUTES"])
	if err != nil {
		return s, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	host, _ := os.Hostname()
	s.resource = map[string]any{"service.name": "ralph", "host.name": host, "process.pid": os.Getpid()}
	for _, p := range pairs {
		s.resource[p[0]] = p[1]
	}
	if name := v["OTEL_SERVICE_NAME"]; name != "" {
		s.resource["service.name"] = name
	}
	if s.address, err = v.address(); err != nil {
		return s, err
	}
	name, value := v.exporter("PROTOCOL")
	if value != "" && value != "http/protobuf" {
		return s, fmt.Errorf("%s: %q is not supported; http/protobuf is", name, value)
	}
	s.header = http.Header{}
	name, value = v.exporter("HEADERS")
	headers, err := list(value)
	if err != nil {
		return s, fmt.Errorf("%s is not a list of NAME=VALUE", name)
	}
	for _, h := range headers {
		s.header.Set(h[0], h[1])
	}
	name, value = v.exporter("TIMEOUT")
	ms, err := strconv.Atoi(cmp.Or(value, "10000"))
	if err != nil || ms <= 0 {
		return s, fmt.Errorf("%s: %q is not a number of milliseconds", name, value)
	}
	s.timeout = min(time.Duration(ms)*time.Millisecond, time.Minute)
	s.client, err = v.client()
	return s, err
}

// address returns the URL to which traces are posted.
func (v variables) address() (string, error) {
	name, value := v.exporter("ENDPOINT")
	u, err := url.Parse(cmp.Or(value, "http://localhost:4318"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s is not an address such as http://localhost:4318", name)
	}
	if !strings.Contains(name, "_TRACES_") {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// client returns an HTTP client with the certificates in the variables.
func (v variables) client() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := v.exporter("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate", name, file)
		}
	}
	name, cert := v.exporter("CLIENT_CERTIFICATE")
	if _, key := v.exporter("CLIENT_KEY"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        config,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: answerMax,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect would send the headers elsewhere
	}, nil
}

// list parses NAME=VALUE,NAME=VALUE with percent escapes.
func list(s string) (pairs [][2]string, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			return nil, errors.New("is not a list of NAME=VALUE")
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, nil
}
