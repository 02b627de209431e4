package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

const secret = "tok_supersecret"

func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lookup := func(env map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	}
	path := []string{"PATH=" + os.Getenv("PATH")}
	for name, c := range map[string]struct {
		source tracker.TokenSource
		want   string // part of the error; empty: the secret
	}{
		"fixed":             {Fixed(" " + secret + "\n"), ""},
		"fixed, empty":      {Fixed(""), "the given token is empty"},
		"variable":          {Environment{Names: []string{"A", "B"}, Lookup: lookup(map[string]string{"A": " ", "B": secret})}, ""},
		"no variable":       {Environment{Names: []string{"A", "B"}, Lookup: lookup(nil)}, "no token: set A or B"},
		"file":              {File(write("good", secret+"\n")), ""},
		"no file":           {File(filepath.Join(dir, "none")), "read the token file"},
		"file of two lines": {File(write("two", secret+"\nsecond")), "has spaces, line ends or other characters"},
		"huge file":         {File(write("huge", strings.Repeat("x", maxLength+1))), "is too long for a token"},
		"command":           {Command{Argv: []string{"echo", secret}, Env: path}, ""},
		"command fails":     {Command{Argv: []string{"sh", "-c", "echo " + secret + "; echo not logged in with " + secret + " >&2; exit 3"}, Env: path}, "sh exited with 3: not logged in with [redacted]"},
		"no command":        {Command{}, "the token command is empty"},
		"unknown command":   {Command{Argv: []string{"no-such-program"}, Env: path}, "could not start no-such-program"},
		"silent command":    {Command{Argv: []string{"true"}, Env: path}, "the output of true is empty"},
		"slow command":      {Command{Argv: []string{"sleep", "60"}, Env: path, Timeout: 30 * time.Millisecond}, "no answer within 30ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token, err := c.source.Token(t.Context())
			if c.want == "" {
				if err != nil || token.Secret != secret {
					t.Errorf("Token = %q, %v", token.Secret, err)
				}
				return
			}
			if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("Token: %v, want ErrNone with %q", err, c.want)
			}
		})
	}
}

func TestTokenIsRedacted(t *testing.T) {
	t.Parallel()
	token := tracker.Token{Secret: secret}
	text, err := json.Marshal(map[string]any{"t": token})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{string(text), fmt.Sprint(token), fmt.Sprintf("%+v %#v %s %q %x %d", token, token, token, token, token, token), fmt.Sprint(struct{ T tracker.Token }{token})} {
		if strings.Contains(s, "supersecret") || strings.Contains(s, fmt.Sprintf("%x", secret)) {
			t.Errorf("shown: %s", s)
		}
	}
}

// clock is a time that the test sets while no Token call runs.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// countingSource returns tok1, tok2, …, or err if that is set.
type countingSource struct {
	mu   sync.Mutex
	n    int
	ends time.Time
	err  error
}

func (c *countingSource) Token(context.Context) (tracker.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return tracker.Token{}, c.err
	}
	c.n++
	return tracker.Token{Secret: fmt.Sprint("tok", c.n), Expires: c.ends}, nil
}

func TestCached(t *testing.T) {
	t.Parallel()
	clock := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	source := &countingSource{ends: clock.Now().Add(time.Hour)}
	k := &Cached{Source: source, Early: 10 * time.Minute, Now: clock.Now}
	get := func() string {
		t.Helper()
		token, err := k.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return token.Secret
	}
	pass := func(d time.Duration) { clock.now = clock.now.Add(d) }
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _, _ = k.Token(context.Background()) })
	}
	wg.Wait()
	if got := get(); got != "tok1" {
		t.Errorf("asked for by many at once: %s", got)
	}
	pass(51 * time.Minute)
	source.err = errors.New("away")
	if got := get(); got != "tok1" {
		t.Errorf("while it is valid and no new one is to be had: %s", got)
	}
	source.err, source.ends = nil, clock.Now().Add(time.Hour)
	if got := get(); got != "tok2" {
		t.Errorf("shortly before the end: %s", got)
	}
	k.Renew(tracker.Token{Secret: "tok1"})
	if got := get(); got != "tok2" {
		t.Errorf("after another token was refused: %s", got)
	}
	k.Renew(tracker.Token{Secret: "tok2"})
	if got := get(); got != "tok3" {
		t.Errorf("after it was refused: %s", got)
	}
	pass(2 * time.Hour)
	source.err = errors.New("away")
	if _, err := k.Token(t.Context()); err == nil {
		t.Error("a token that has ended is given")
	}
}

func TestObserved(t *testing.T) {
	t.Parallel()
	var secrets []string
	inner := &Cached{Source: Fixed("first")}
	source := Observed{Source: inner, OnSecret: func(secret string) { secrets = append(secrets, secret) }}
	token, err := source.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inner.Source = Fixed("second")
	source.Renew(token)
	if _, err := source.Token(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := (Observed{Source: Fixed(""), OnSecret: source.OnSecret}).Token(t.Context()); err == nil {
		t.Error("no error for no token")
	}
	if !slices.Equal(secrets, []string{"first", "second"}) {
		t.Errorf("told of %q", secrets)
	}
}
