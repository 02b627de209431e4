package trace

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// settings are what the standard variables say.
type settings struct {
	off      bool
	address  string
	header   http.Header
	timeout  time.Duration
	client   *http.Client
	resource []*commonpb.KeyValue
	sample   func(traceID []byte) bool
}

// HeaderVariables hold what a collector's owner asks senders for, such as a token. They are for ralph alone.
func HeaderVariables() []string {
	return []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}
}

// Secrets are the values of the headers that the variables name.
func Secrets(env []string) (values []string) {
	v := variablesOf(env)
	for _, name := range HeaderVariables() {
		headers, _ := list(v[name])
		for _, h := range headers {
			values = append(values, h[1])
			if _, token, ok := strings.Cut(h[1], " "); ok { // after the scheme
				values = append(values, token)
			}
		}
	}
	return values
}

// variables are those of an environment.
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

// exporter is the variable of the exporter of traces that is set, else that of all exporters, and its value.
func (v variables) exporter(name string) (variable, value string) {
	if own := "OTEL_EXPORTER_OTLP_TRACES_" + name; v[own] != "" {
		return own, v[own]
	}
	return "OTEL_EXPORTER_OTLP_" + name, v["OTEL_EXPORTER_OTLP_"+name]
}

// parse reads the variables. An error names one, and never a header's value.
func parse(env []string) (s settings, err error) {
	v := variablesOf(env)
	if s.off = strings.EqualFold(v["OTEL_SDK_DISABLED"], "true") || v["OTEL_TRACES_EXPORTER"] == "none"; s.off {
		return s, nil
	}
	if s.sample, err = sampler(v["OTEL_TRACES_SAMPLER"], v["OTEL_TRACES_SAMPLER_ARG"]); err != nil {
		return s, err
	}
	if s.resource, err = resourceOf(v); err != nil {
		return s, err
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

// address is where traces are posted.
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

// client is an HTTP client with the certificates that the variables name.
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
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: answerMax},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would take the headers along
	}, nil
}

// resourceOf are the attributes of what sends the traces.
func resourceOf(v variables) (attributes []*commonpb.KeyValue, err error) {
	if name := v["OTEL_SERVICE_NAME"]; name != "" {
		attributes = append(attributes, attribute("service.name", name))
	}
	pairs, err := list(v["OTEL_RESOURCE_ATTRIBUTES"])
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	for _, p := range pairs {
		attributes = addMissing(attributes, attribute(p[0], p[1]))
	}
	return attributes, nil
}

// list reads NAME=VALUE,NAME=VALUE with percent escapes.
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

// sampler says of which runs traces are sent. The same run is sampled on all machines, or on none.
func sampler(name, arg string) (func([]byte) bool, error) {
	switch strings.TrimPrefix(name, "parentbased_") { // a run has no parent
	case "", "always_on":
		return func([]byte) bool { return true }, nil
	case "always_off":
		return func([]byte) bool { return false }, nil
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(arg, "1"), 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a number from 0 to 1", arg)
		}
		return func(id []byte) bool {
			return float64(binary.BigEndian.Uint64(id[8:])>>11) < ratio*(1<<53)
		}, nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not supported; always_on, always_off and traceidratio are", name)
}
