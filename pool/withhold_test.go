package pool

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"testing"
)

func TestSecretsAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	const value = "sk-live/Öl+\"quoted\"&more=1"
	s := newSecrets([]string{value, "short", "  "})
	for name, text := range map[string]string{
		"raw":            "key " + value + ".",
		"hex":            hex.EncodeToString([]byte("xx" + value)),
		"query":          "?k=" + url.QueryEscape(value),
		"base64":         base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 shifted": base64.StdEncoding.EncodeToString([]byte("a" + value + "zz")),
		"base64 again":   base64.URLEncoding.EncodeToString([]byte("ab" + value + "z")),
		"JSON":           `{"k":"sk-live/Öl+\"quoted\"\u0026more=1"}`,
	} {
		if got := s.clean(text); got != withheld {
			t.Errorf("%s: %q passes", name, got)
		}
	}
	if s.in("short and ordinary text") {
		t.Error("ordinary text is withheld")
	}
}
