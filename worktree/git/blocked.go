package git

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// BlockedError means that a ref cannot be made because another ref's name is in the way. It is an [ErrDeclined].
type BlockedError struct {
	Remote     string // remote that has both refs; empty: this repository
	Ref, Other string
}

func (e *BlockedError) Error() string {
	where, remove := "this repository", "git update-ref -d "
	if e.Remote != "" {
		where, remove = e.Remote, "git push "+Quote(e.Remote)+" --delete "
	}
	return fmt.Sprintf("on %s, the name of the ref %s is in the way of %s; rename it, or delete it with: %s",
		where, Printable(e.Other), Printable(e.Ref), remove+Quote(Printable(e.Other)))
}

// Unwrap makes errors.Is(err, ErrDeclined) true.
func (*BlockedError) Unwrap() error { return ErrDeclined }

// findBlocking finds the ref in the way of failed moves. remoteRefs has the remote's refs whose names end in a moved ref's
// name.
func findBlocking(err error, remote string, moves []Edit, remoteRefs map[string]string) error {
	names := []string{"", "", ""}
	if failed, ok := errors.AsType[*Error](err); ok {
		names = append(regexp.MustCompile(`'(refs/[^']+)' exists; cannot create '(refs/[^']+)'`).FindStringSubmatch(failed.Stderr), names...)
	}
	for _, m := range moves { // git push cannot mark a name as a full one, and a full name takes precedence over one of refs/remotes
		nested := m.Ref == names[2] && (strings.HasPrefix(m.Ref, names[1]+"/") || strings.HasPrefix(names[1], m.Ref+"/"))
		for _, other := range []string{names[1], "refs/" + m.Ref, Heads + m.Ref, "refs/tags/" + m.Ref, "refs/remotes/" + m.Ref} {
			if nested || remoteRefs[other] != "" && (!strings.HasPrefix(other, "refs/remotes/") || remoteRefs[m.Ref] == "") {
				return &BlockedError{Remote: remote, Ref: m.Ref, Other: other}
			}
		}
	}
	return nil
}
