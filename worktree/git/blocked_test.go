package git

import "testing"

// A person deletes the ref that is reported to be in the way. So a remote may only name refs that can be in the way of the
// push.
func TestBlockedByWhatCanBeInTheWay(t *testing.T) {
	t.Parallel()
	const ref = "refs/ralph/claims/k"
	for _, test := range []struct {
		other, of string
		want      bool
	}{
		{"refs/ralph/claims", ref, true},
		{ref + "/x", ref, true},
		{"refs/heads/main", ref, false},
		{"refs/heads/main", "refs/heads/main/x", false}, // nobody has pushed that
	} {
		said := &Error{Args: []string{"push"}, Stderr: "error: '" + test.other + "' exists; cannot create '" + test.of + "'"}
		if err := findBlocking(said, "origin", []Edit{{Ref: ref}}, nil); (err != nil) != test.want {
			t.Errorf("%s: %v", said.Stderr, err)
		}
	}
}
