package githubtest

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// GitHub's published description (MIT), version 23.0.2 of @octokit/openapi: the paths that ralph uses, without prose.
//
//go:embed testdata/github-openapi.json.gz
var packedDescription []byte

const descriptionURL = "http://github.invalid"

// description is GitHub's OpenAPI description: routes for validation, and examples as templates for answers.
type description struct {
	router   routers.Router
	examples map[string]string // JSON by name
}

var loadDescription = sync.OnceValues(parse) //nolint:gochecknoglobals // parsing takes a tenth of a second; nothing writes to the result

func describe(t testing.TB) *description {
	t.Helper()
	d, err := loadDescription()
	if err != nil {
		t.Fatalf("read GitHub's description: %v", err)
	}
	return d
}

func parse() (*description, error) {
	zip, err := gzip.NewReader(bytes.NewReader(packedDescription))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	doc.Servers = openapi3.Servers{{URL: descriptionURL}}
	d := &description{examples: map[string]string{}}
	for name, e := range doc.Components.Examples {
		b, err := json.Marshal(e.Value.Value)
		if err != nil {
			return nil, err
		}
		d.examples[name] = string(b)
	}
	d.router, err = gorillamux.NewRouter(doc)
	return d, err
}

// object returns a copy of an example, or of the first element of an example that is a list.
func (d *description) object(name string) map[string]any {
	var v any
	if err := json.Unmarshal([]byte(d.examples[name]), &v); err != nil {
		panic("githubtest: no example " + name)
	}
	if list, ok := v.([]any); ok {
		v = list[0]
	}
	return v.(map[string]any)
}

// request finds the route and validates the request. Path is relative to the API's base URL.
func (d *description) request(r *http.Request, path string, body []byte) (*openapi3filter.RequestValidationInput, error) {
	u, err := url.Parse(descriptionURL + path)
	if err != nil {
		return nil, err
	}
	u.RawQuery = r.URL.RawQuery
	in := r.Clone(r.Context())
	in.URL, in.Host, in.Body = u, "github.invalid", io.NopCloser(bytes.NewReader(body))
	route, params, err := d.router.FindRoute(in)
	if err != nil {
		return nil, fmt.Errorf("%s %s is not in GitHub's description: %w", r.Method, path, err)
	}
	for k, v := range params {
		if plain, err := url.PathUnescape(v); err == nil {
			params[k] = plain
		}
	}
	known := &openapi3filter.RequestValidationInput{Request: in, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	if err := openapi3filter.ValidateRequest(context.WithoutCancel(r.Context()), known); err != nil {
		return nil, fmt.Errorf("request %s %s: %w", r.Method, r.URL.RequestURI(), err)
	}
	return known, nil
}

// validate validates the server's answer to a request. It skips errors that the description of the path does not list.
func validate(to *openapi3filter.RequestValidationInput, status int, h http.Header, body []byte) error {
	if status >= 300 && to.Route.Operation.Responses.Status(status) == nil {
		return nil
	}
	if status == http.StatusFound || strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		return nil
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: to, Status: status, Header: h, Body: io.NopCloser(bytes.NewReader(body)), Options: to.Options,
	})
	if err != nil {
		return fmt.Errorf("answer %d to %s %s: %w", status, to.Request.Method, to.Request.URL.Path, err)
	}
	return nil
}
