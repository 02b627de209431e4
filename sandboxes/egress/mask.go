package egress

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/leak"
)

// maskHeader removes every header that contains the secret: a service that echoes its request would reveal it to the
// sandbox.
func maskHeader(h http.Header, secret *leak.Finder) {
	maps.DeleteFunc(h, func(name string, values []string) bool {
		return secret.In(name) || slices.ContainsFunc(values, secret.In)
	})
}

// checkSearchable returns an error for an answer that cannot be searched for the credential, because it is compressed or partial
// although the request asked for neither.
func checkSearchable(in *http.Response) error {
	coding := strings.Join(in.Header.Values("Content-Encoding"), ",")
	switch {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return deny(Unreadable, "the service has sent the encoding %s against ralph's request", clip(printable(coding)))
	case in.StatusCode == http.StatusPartialContent || in.Header.Get("Content-Range") != "":
		return deny(Unreadable, "the service has sent a partial answer against ralph's request")
	}
	return nil
}
