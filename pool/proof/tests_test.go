package proof

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// The statement has the result of the tests, but only for exactly these commits.
func TestStatementOfTests(t *testing.T) {
	t.Parallel()
	run := func(base, tip journal.TestOutcome) journal.Rerun {
		r := journal.Rerun{Command: "test x", Files: []string{"x"}, Base: journal.TestRun{Outcome: base, Log: "base.log"}}
		if tip != "" {
			r.Tip = &journal.TestRun{Outcome: tip}
		}
		return r
	}
	good, vacuous := run(journal.TestsNotBuilt, journal.TestsPassed), run(journal.TestsPassed, "")
	for name, c := range map[string]struct {
		tests *journal.Retest
		says  string // a line of Summary or Limitations
		fails string // why the statement contradicts itself
		holds bool   // it has a claim that holds
	}{
		"none":            {nil, "that its tests test the change: nobody has run them without it", "", false},
		"of others":       {&journal.Retest{Tip: object("9"), Proved: true, Runs: []journal.Rerun{good}}, "that its tests test the change: nobody has run them without it", "", false},
		"nothing to do":   {&journal.Retest{Tip: object("1"), Exempt: true, Why: "it changes no code"}, "that its tests test the change: it changes no code", "", false},
		"unproved":        {&journal.Retest{Tip: object("1"), Why: "x passes", Runs: []journal.Rerun{vacuous}}, "that its tests test the change: x passes", "", false},
		"proved":          {&journal.Retest{Tip: object("1"), Base: object("3"), Proved: true, Runs: []journal.Rerun{good}}, "  `test x`: unbuilt without the change, passed with it; log base.log has the SHA-256 0123…", "", true},
		"contradiction":   {&journal.Retest{Tip: object("1"), Base: object("3"), Proved: true, Runs: []journal.Rerun{good, vacuous}}, "  `test x`: passed without the change; log base.log has the SHA-256 0123…", "not `test x`", false},
		"on another base": {&journal.Retest{Tip: object("1"), Base: object("4"), Proved: true, Runs: []journal.Rerun{good}}, "that its tests test all that the issue asks for", "they ran on 444444444444", false},
		"proved by none":  {&journal.Retest{Tip: object("1"), Base: object("3"), Proved: true}, "that its tests test all that the issue asks for", "none ran", false},
	} {
		r := record()
		r.Facts.Retest = c.tests
		s := statement(r)
		if !slices.Contains(append(s.Summary(), s.Limitations()...), c.says) {
			t.Errorf("%s: %q, %q", name, s.Summary(), s.Limitations())
		}
		results := Judge(Found{s, "SHA256:x"}, facts())
		if got := AllHold(results); got != (c.fails == "") {
			t.Errorf("%s: %+v", name, results)
		}
		last := results[len(results)-1]
		if claims := strings.HasPrefix(last.What, "the tests"); claims != (c.holds || c.fails != "") || claims && last.Why != c.fails {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// Statements from before they included tests are still read.
func TestEarlierStatement(t *testing.T) {
	t.Parallel()
	r := record()
	r.Facts.Retest = nil
	text, err := json.Marshal(statement(r))
	if err != nil || strings.Contains(string(text), `"tests"`) {
		t.Fatalf("%s, %v", text, err)
	}
	if s, err := decodeStatement(text); err != nil || s.Predicate.Tests != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// One line says what is missing and what to type; a pipe does not block the reader.
func TestNoKeyFile(t *testing.T) {
	t.Parallel()
	missing, pipe := filepath.Join(t.TempDir(), "no key"), filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, private := ReadKey(missing)
	_, public := ReadPublicKeys(missing)
	for _, err := range []error{private, public} {
		if err == nil || !strings.HasPrefix(err.Error(), "there is no file "+missing+"; make a key with: ssh-keygen -t ed25519 -N '' -f ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
	if !strings.HasSuffix(private.Error(), "-f '"+missing+"'") {
		t.Error(private)
	}
	_, private = ReadKey(pipe)
	_, public = ReadPublicKeys(pipe)
	_, folder := ReadKey(os.TempDir())
	for _, err := range []error{private, public, folder} {
		if err == nil || !strings.HasSuffix(err.Error(), "is not a regular file") {
			t.Errorf("%v", err)
		}
	}
}
