// Package token provides sources of a forge's token: an environment variable, a file, a program, or a fixed text, and a cache
// for slow sources. The caller passes one to a tracker as its [tracker.TokenSource]. All are safe for concurrent use.
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

// ErrNone is wrapped by the errors of sources without a usable token.
var ErrNone = errors.New("no token")

// Fixed is a source with one given token.
type Fixed string

// Token returns the token.
func (f Fixed) Token(context.Context) (tracker.Token, error) {
	return parseToken(string(f), "the given token")
}

// Environment reads the token from the first of the named variables that is not empty.
type Environment struct {
	Names  []string
	Lookup func(string) (string, bool) // nil: os.LookupEnv
}

// Token returns the token.
func (e Environment) Token(context.Context) (tracker.Token, error) {
	lookup := e.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	for _, name := range e.Names {
		if v, ok := lookup(name); ok && strings.TrimSpace(v) != "" {
			return parseToken(v, "the variable "+name)
		}
	}
	return tracker.Token{}, fmt.Errorf("%w: set %s", ErrNone, strings.Join(e.Names, " or "))
}

// File reads the token from a file, again for each request, so that the file can be replaced at any time.
type File string

// Token returns the token.
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
	return parseToken(string(b), "the token file "+string(f))
}

// Command reads the token from the standard output of a program.
type Command struct {
	Argv    []string
	Dir     string
	Env     []string
	Timeout time.Duration // 0: 30 s
}

// Token runs the program. Errors may contain its standard error, but never its standard output.
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
		if secret := strings.TrimSpace(out.String()); secret != "" { // the program may have printed the token before it failed
			message = strings.ReplaceAll(message, secret, "[redacted]")
		}
		message = strings.Join(strings.Fields(message), " ")
		return tracker.Token{}, fmt.Errorf("%w: %s exited with %d: %s", ErrNone, c.Argv[0], exit.Code, message)
	}
	return parseToken(out.String(), "the output of "+c.Argv[0])
}

// Observed reports each token of a source before its use, so that it can be redacted elsewhere.
type Observed struct {
	Source   tracker.TokenSource
	OnSecret func(secret string) // called for each Token call; must be safe for concurrent use
}

// Token returns the source's token.
func (o Observed) Token(ctx context.Context) (tracker.Token, error) {
	got, err := o.Source.Token(ctx)
	if err == nil && o.OnSecret != nil {
		o.OnSecret(got.Secret)
	}
	return got, err
}

// Renew calls Renew of a source that caches a token.
func (o Observed) Renew(token tracker.Token) {
	if renewer, ok := o.Source.(tracker.TokenRenewer); ok {
		renewer.Renew(token)
	}
}

const maxLength = 16 << 10 // bytes

// parseToken trims a token and rejects text that cannot be one.
func parseToken(s, where string) (tracker.Token, error) {
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

// Cached caches the token of a slow source until shortly before it expires, or for five minutes if the expiry is unknown.
// Only one caller at a time queries the source.
type Cached struct {
	Source tracker.TokenSource
	Early  time.Duration    // how long before its expiry a token is replaced; 0: 5 min
	Now    func() time.Time // nil: time.Now

	mu         sync.Mutex
	token      tracker.Token // guarded by mu
	validUntil time.Time     // guarded by mu
}

// Token returns the cached token or a new one. If the source fails, the cached token counts until it expires.
func (k *Cached) Token(ctx context.Context) (tracker.Token, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := time.Now()
	if k.Now != nil {
		at = k.Now()
	}
	if k.token.Secret != "" && at.Before(k.validUntil) {
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
	k.token, k.validUntil = t, at.Add(usual)
	if !t.Expires.IsZero() {
		k.validUntil = t.Expires.Add(-cmp.Or(max(k.Early, 0), usual))
	}
	return t, nil
}

// Renew drops the cached token if it is t.
func (k *Cached) Renew(t tracker.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token.Secret == t.Secret {
		k.token, k.validUntil = tracker.Token{}, time.Time{}
	}
}

var (
	_ tracker.TokenRenewer = (*Cached)(nil)
	_ tracker.TokenRenewer = Observed{}
)
