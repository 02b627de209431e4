package identity

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Validate refuses names and addresses that git would refuse or change.
func (i Identity) Validate() error {
	var errs []error
	need := func(role string, who Ident) {
		odd := strings.ContainsAny(who.Name+who.Email, "<>") || strings.ContainsFunc(who.Name+who.Email, unicode.IsControl)
		if odd || stripped(who.Name) == "" || stripped(who.Email) == "" {
			errs = append(errs, fmt.Errorf("%s %q <%q> needs a name and an address, both without < > and control characters",
				role, who.Name, who.Email))
		}
	}
	if i.Author != (Ident{}) {
		need("Author", i.Author)
	}
	if i.Committer != (Ident{}) {
		need("Committer", i.Committer)
	}
	for _, who := range i.CoAuthors {
		need("CoAuthors", who)
	}
	if i.Sign != "" && i.Sign != GPG && i.Sign != SSH {
		errs = append(errs, fmt.Errorf("format %q of Sign is neither gpg nor ssh", i.Sign))
	}
	return errors.Join(errs...)
}
