package git

import (
	"errors"
	"fmt"
	"regexp"
)

// BlockedError is a ref that cannot move because another ref has a name that is in its way. It is an [ErrDeclined].
type BlockedError struct {
	Remote     string // that has both; empty: this repository
	Ref, Other string
}

func (e *BlockedError) Error() string {
	where, remove := "this repository", "git update-ref -d "
	if e.Remote != "" {
		where, remove = e.Remote, "git push "+Quote(e.Remote)+" --delete "
	}
	return fmt.Sprintf("on %s, the name of the ref %s is in the way of %s; rename it, or delete it with: %s", where, Printable(e.Other), Printable(e.Ref), remove+Quote(Printable(e.Other)))
}

// Unwrap makes errors.Is(err, ErrDeclined) true.
func (*BlockedError) Unwrap() error { return ErrDeclined }

// blocked finds the ref in the way of the moves that have failed. at are the remote's refs whose names end in those of the moves.
func blocked(err error, remote string, moves []Edit, at map[string]string) error {
	if failed, ok := errors.AsType[*Error](err); ok {
		if m := regexp.MustCompile(`'(refs/[^']+)' exists; cannot create '(refs/[^']+)'`).FindStringSubmatch(failed.Stderr); m != nil {
			return &BlockedError{Remote: remote, Ref: m[2], Other: m[1]}
		}
	}
	for _, m := range moves { // git push has no way to say that a name is a full one, which counts for more than one of refs/remotes
		for _, prefix := range []string{"refs/", Heads, "refs/tags/", "refs/remotes/"} {
			if at[prefix+m.Ref] != "" && (prefix != "refs/remotes/" || at[m.Ref] == "") {
				return &BlockedError{Remote: remote, Ref: m.Ref, Other: prefix + m.Ref}
			}
		}
	}
	return nil
}
