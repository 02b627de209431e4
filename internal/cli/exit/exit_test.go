package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/tracker"
)

// TestExitStatus checks the exit status of each kind of error, as the help lists them.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "ralph"}
	killed, cancel := context.WithCancelCause(t.Context())
	cancel(ErrKilled)
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want Problem
	}{
		{"plain", t.Context(), errors.New("x"), Problem{Status: 1, Message: "x"}},
		{"usage", t.Context(), fmt.Errorf("a: %w", Usagef("x")), Problem{Status: 2, Message: "a: x"}},
		{
			"incomplete", t.Context(), &Error{Status: Incomplete, Err: errors.New("2 of 3"), Hint: "ralph status"},
			Problem{Status: 3, Message: "2 of 3", Hint: "ralph status"},
		},
		{"parked", t.Context(), &Error{Status: Parked, Err: errors.New("x")}, Problem{Status: 4, Message: "x"}},
		{"refused", t.Context(), &tracker.RefusedError{Err: errors.New("x")}, Problem{Status: 4, Message: "tracker refuses: x"}},
		{"refused without a cause", t.Context(), &tracker.RefusedError{}, Problem{Status: 4, Message: "tracker refuses, and gives no reason"}},
		{"interrupted", t.Context(), fmt.Errorf("a: %w", ErrInterrupted), Problem{Status: 130, Message: "a: interrupted"}},
		{"cancelled by the user", killed, context.Canceled, Problem{Status: 130, Message: "interrupted twice"}},
		{"cancelled by something else", t.Context(), context.Canceled, Problem{Status: 1, Message: "context canceled"}},
	} {
		if diff := cmp.Diff(&c.want, ProblemOf(c.ctx, root, c.err)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if ProblemOf(t.Context(), root, nil) != nil {
		t.Error("no error is a problem")
	}
}

func TestExactlyOne(t *testing.T) {
	t.Parallel()
	check, cmd := OneIssue, &cobra.Command{Use: "show"}
	if err := check(cmd, []string{"a"}); err != nil {
		t.Error(err)
	}
	for want, args := range map[string][]string{"name the issue: show KEY": nil, "show takes one KEY, not 2": {"a", "b"}} {
		if err := check(cmd, args); err == nil || err.Error() != want {
			t.Errorf("%q: %v", args, err)
		}
	}
}
