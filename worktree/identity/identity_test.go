package identity

import (
	"strings"
	"testing"
)

// Names that git would refuse or change are refused before any work begins.
func TestValidate(t *testing.T) {
	t.Parallel()
	eve := Ident{"Eve O'Hara", "eve@example.com"}
	for _, good := range []Identity{{}, {Author: eve, Committer: eve, CoAuthors: []Ident{eve}, Sign: SSH}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for want, bad := range map[string]Identity{
		`Author "half" <"">`:          {Author: Ident{Name: "half"}},
		`Author "" <"a@b">`:           {Author: Ident{Email: "a@b"}},
		`Author "Eve" <"<>">`:         {Author: Ident{"Eve", "<>"}},
		`Committer "a\nb" <"a@b">`:    {Committer: Ident{"a\nb", "a@b"}},
		`Committer "a<b" <"a@b">`:     {Committer: Ident{"a<b", "a@b"}},
		`Committer "\x1b[1m" <"a@b">`: {Committer: Ident{"\x1b[1m", "a@b"}},
		`Committer "..." <"a@b">`:     {Committer: Ident{"...", "a@b"}},
		`CoAuthors "" <"">`:           {CoAuthors: []Ident{{}}},
		`"x509" of Sign`:              {Sign: "x509"},
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
