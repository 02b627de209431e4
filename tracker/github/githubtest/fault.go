package githubtest

import (
	"net/http"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// Fault is a fault of one request.
type Fault = forgetest.Fault

// Faults are one of each kind; each can happen to any request.
func Faults() map[string]Fault {
	return map[string]Fault{
		"status 500":              {Status: http.StatusInternalServerError, Body: `{"message":"Server Error"}`},
		"status 502, no JSON":     {Status: http.StatusBadGateway, Body: "<html>Bad Gateway"},
		"status 503 after effect": {Status: http.StatusServiceUnavailable, Effect: true},
		"cut body":                {Cut: true},
		"cut body after effect":   {Cut: true, Effect: true},
		"malformed after effect":  {Status: http.StatusOK, Body: `{"id": 12,`, Effect: true},
		"null after effect":       {Status: http.StatusOK, Body: `null`, Effect: true},
		"nothing in it":           {Status: http.StatusOK, Body: `{}`},
		"nothing after effect":    {Status: http.StatusCreated, Body: `{}`, Effect: true},
		"empty after effect":      {Status: http.StatusOK, Effect: true},
		"other type after effect": {Status: http.StatusOK, Body: `[{"number": "one", "id": {}, "name": 3}, null, {}]`, Effect: true},
		"reset":                   {Reset: true},
		"reset after effect":      {Reset: true, Effect: true},
		"burst limit": {Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"7"}},
			Body: `{"message":"You have exceeded a secondary rate limit."}`},
		"too many requests": {Status: http.StatusTooManyRequests, Body: `{"message":"slow down"}`},
	}
}
