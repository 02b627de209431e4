// Package token has the sources of a forge's token: a variable, a file, a program, or a fixed text, and a cache for slow
// ones. Programs choose one; trackers get it as a [tracker.TokenSource]. All are safe for concurrent use.
package token

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/tracker"
)

// ErrNone is wrapped by errors of sources that have no token to give.
var ErrNone = errors.New("no token")

// Fixed is a token the caller already has.
type Fixed string

// Token gives it.
func (f Fixed) Token(context.Context) (tracker.Token, error) {
	return check(string(f), "the given token")
}

// Environment takes the token from the first of the named variables that is set.
type Environment struct {
	Names  []string
	Lookup func(string) (string, bool) // nil: os.LookupEnv
}

// Token gives it.
func (e Environment) Token(context.Context) (tracker.Token, error) {
	lookup := e.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	for _, name := range e.Names {
		if v, ok := lookup(name); ok && strings.TrimSpace(v) != "" {
			return check(v, "the variable "+name)
		}
	}
	return tracker.Token{}, fmt.Errorf("%w: set %s", ErrNone, strings.Join(e.Names, " or "))
}

// File takes the token from a file, read again for each request, so that it may be replaced at any time.
type File string

// Token gives it.
func (f File) Token(context.Context) (tracker.Token, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return tracker.Token{}, fmt.Errorf("%w: read the token file: %w", ErrNone, err)
	}
	defer func() { _ = file.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(file, maxLength+1))
	if err != nil {
		return tracker.Token{}, fmt.Errorf("%w: read the token file: %w", ErrNone, err)
	}
	return check(string(b), "the token file "+string(f))
}

// Command takes the token from the standard output of a program.
type Command struct {
	Argv    []string
	Dir     string
	Env     []string
	Timeout time.Duration // 0: 30 s
}

// Token runs the program. Its standard output is in no error; its standard error is.
func (c Command) Token(ctx context.Context) (tracker.Token, error) {
	if len(c.Argv) == 0 {
		return tracker.Token{}, fmt.Errorf("%w: the token command is empty", ErrNone)
	}
	timeout := cmp.Or(max(c.Timeout, 0), 30*time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	out, errs := proc.NewTail(maxLength+1), proc.NewTail(512)
	exit, err := proc.Run(ctx, proc.Spec{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdout: out, Stderr: errs})
	if err != nil {
		return tracker.Token{}, fmt.Errorf("%w: run %s: %w", ErrNone, c.Argv[0], err)
	}
	if exit.Code != 0 {
		message := strings.TrimSpace(string(bytes.ToValidUTF8(errs.Bytes(), nil)))
		if secret := strings.TrimSpace(out.String()); secret != "" { // a failing program may still have printed it
			message = strings.ReplaceAll(message, secret, "[redacted]")
		}
		message = strings.Join(strings.Fields(message), " ")
		return tracker.Token{}, fmt.Errorf("%w: %s exited with %d: %s", ErrNone, c.Argv[0], exit.Code, message)
	}
	return check(out.String(), "the output of "+c.Argv[0])
}

// Observed reports each token of a source before it is used, so that it can be redacted elsewhere.
type Observed struct {
	Source   tracker.TokenSource
	OnSecret func(secret string) // safe for concurrent use; called each time
}

// Token gives the source's token.
func (o Observed) Token(ctx context.Context) (tracker.Token, error) {
	got, err := o.Source.Token(ctx)
	if err == nil && o.OnSecret != nil {
		o.OnSecret(got.Secret)
	}
	return got, err
}

// Renew passes on to a source that caches a token.
func (o Observed) Renew(token tracker.Token) {
	if renewer, ok := o.Source.(tracker.TokenRenewer); ok {
		renewer.Renew(token)
	}
}

const maxLength = 16 << 10 // bytes

// check cuts the space around a token and refuses text that cannot be one.
func check(s, where string) (tracker.Token, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return tracker.Token{}, fmt.Errorf("%w: %s is empty", ErrNone, where)
	case len(s) > maxLength:
		return tracker.Token{}, fmt.Errorf("%w: %s is too long for a token", ErrNone, where)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }):
		return tracker.Token{}, fmt.Errorf("%w: %s has spaces, line ends or other characters that no token has", ErrNone, where)
	}
	return tracker.Token{Secret: s}, nil
}

// Cached caches the token of a slow source until shortly before it expires, or for five minutes when the expiry is
// unknown. Only one caller at a time asks the source.
type Cached struct {
	Source tracker.TokenSource
	Early  time.Duration    // how long before its expiry a token is replaced; 0: 5 min
	Now    func() time.Time // nil: time.Now

	mu    sync.Mutex
	token tracker.Token // guarded by mu
	until time.Time     // guarded by mu
}

// Token gives the cached token or a new one. While the cached one is valid, a source that cannot renew it early is no
// error.
func (k *Cached) Token(ctx context.Context) (tracker.Token, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := time.Now()
	if k.Now != nil {
		at = k.Now()
	}
	if k.token.Secret != "" && at.Before(k.until) {
		return k.token, nil
	}
	t, err := k.Source.Token(ctx)
	if err != nil {
		if k.token.Secret != "" && at.Before(k.token.Expires) {
			return k.token, nil
		}
		return tracker.Token{}, err
	}
	const usual = 5 * time.Minute
	k.token, k.until = t, at.Add(usual)
	if !t.Expires.IsZero() {
		k.until = t.Expires.Add(-cmp.Or(max(k.Early, 0), usual))
	}
	return t, nil
}

// Renew drops the token.
func (k *Cached) Renew(t tracker.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token.Secret == t.Secret {
		k.token, k.until = tracker.Token{}, time.Time{}
	}
}

var (
	_ tracker.TokenRenewer = (*Cached)(nil)
	_ tracker.TokenRenewer = Observed{}
)
