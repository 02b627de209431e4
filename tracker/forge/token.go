package forge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Token is a secret that the forge takes for an identity. It prints as "[hidden]", whatever the verb.
type Token struct {
	Secret  string
	Expires time.Time // zero: does not end, or is not known
	// Identity names whom the token speaks for and stays the same when the secret changes; empty: the secret itself.
	Identity string
}

// Format hides the secret from every verb of fmt.
func (Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[hidden]") }

// MarshalText hides the secret from encoders.
func (Token) MarshalText() ([]byte, error) { return []byte("[hidden]"), nil }

// Source gives the token for the next request. Its errors never hold a secret. It is safe for concurrent use.
type Source interface {
	Token(ctx context.Context) (Token, error)
}

// Renewer is implemented by sources that keep a token. Renew forgets it when it still is the given one, because the
// forge refused it.
type Renewer interface {
	Renew(t Token)
}

// ErrNoToken is wrapped by errors of sources that have no token to give.
var ErrNoToken = errors.New("no token")

// Fixed is a token the caller already has.
type Fixed string

// Token gives it.
func (f Fixed) Token(context.Context) (Token, error) {
	return clean(string(f), "the given token")
}

// Environment takes the token from the first of the named variables that is set.
type Environment struct {
	Names  []string
	Lookup func(string) (string, bool) // nil: os.LookupEnv
}

// Token gives it.
func (e Environment) Token(context.Context) (Token, error) {
	lookup := e.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	for _, name := range e.Names {
		if v, ok := lookup(name); ok && strings.TrimSpace(v) != "" {
			return clean(v, "the variable "+name)
		}
	}
	return Token{}, fmt.Errorf("%w: set %s", ErrNoToken, strings.Join(e.Names, " or "))
}

// File takes the token from a file, read again for each request, so that it may be replaced at any time.
type File string

// Token gives it.
func (f File) Token(context.Context) (Token, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return Token{}, fmt.Errorf("%w: read the token file: %w", ErrNoToken, err)
	}
	defer func() { _ = file.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return Token{}, fmt.Errorf("%w: read the token file: %w", ErrNoToken, err)
	}
	return clean(string(b), "the token file "+string(f))
}

// Command takes the token from the standard output of a program, such as `gh auth token`.
type Command struct {
	Argv    []string
	Dir     string
	Env     []string
	Timeout time.Duration // 0: 30 s
}

// Token runs the program. Its output appears in no error; what it says on standard error does.
func (c Command) Token(ctx context.Context) (Token, error) {
	if len(c.Argv) == 0 {
		return Token{}, fmt.Errorf("%w: the token command is empty", ErrNoToken)
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	out, errs := proc.NewTail(maxToken+1), proc.NewTail(512)
	exit, err := proc.Run(ctx, proc.Spec{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdout: out, Stderr: errs})
	if err != nil {
		return Token{}, fmt.Errorf("%w: run %s: %w", ErrNoToken, c.Argv[0], err)
	}
	if exit.Code != 0 {
		// A program that fails may still have printed the secret; it must not be in what is shown.
		said := strings.TrimSpace(string(bytes.ToValidUTF8(errs.Bytes(), nil)))
		if secret := strings.TrimSpace(out.String()); secret != "" {
			said = strings.ReplaceAll(said, secret, "[hidden]")
		}
		said = strings.Join(strings.Fields(said), " ")
		return Token{}, fmt.Errorf("%w: %s exited with %d: %s", ErrNoToken, c.Argv[0], exit.Code, said)
	}
	return clean(out.String(), "the output of "+c.Argv[0])
}

// Told tells of each token that a source gives, before anybody uses it: for keeping it out of what others see.
type Told struct {
	Source
	Tell func(secret string) // safe for concurrent use; what is known already is told again
}

// Token gives the source's token.
func (t Told) Token(ctx context.Context) (Token, error) {
	token, err := t.Source.Token(ctx)
	if err == nil && t.Tell != nil {
		t.Tell(token.Secret)
	}
	return token, err
}

// Renew passes the wish on to a source that keeps a token.
func (t Told) Renew(token Token) {
	if renewer, ok := t.Source.(Renewer); ok {
		renewer.Renew(token)
	}
}

const maxToken = 16 << 10 // bytes

// clean cuts the space around a token and refuses what cannot be one.
func clean(s, where string) (Token, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return Token{}, fmt.Errorf("%w: %s is empty", ErrNoToken, where)
	case len(s) > maxToken:
		return Token{}, fmt.Errorf("%w: %s is too long for a token", ErrNoToken, where)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Token{}, fmt.Errorf("%w: %s has spaces, line ends or other signs that no token has", ErrNoToken, where)
	}
	return Token{Secret: s}, nil
}

// Kept keeps the token of a source that is slow to ask, until shortly before it ends, or for a lifetime where the
// token does not say. Only one caller at a time asks.
type Kept struct {
	Source   Source
	Lifetime time.Duration    // of a token without an end; 0: 5 min
	Early    time.Duration    // how long before its end a token is replaced; 0: 5 min
	Now      func() time.Time // nil: time.Now

	mu    sync.Mutex
	token Token
	until time.Time // guarded by mu
}

// Token gives the kept token, or a new one. While a token is still valid, a source that cannot renew it early is no
// error.
func (k *Kept) Token(ctx context.Context) (Token, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now
	if k.Now != nil {
		now = k.Now
	}
	at := now()
	if k.token.Secret != "" && at.Before(k.until) {
		return k.token, nil
	}
	t, err := k.Source.Token(ctx)
	if err != nil {
		if k.token.Secret != "" && at.Before(k.token.Expires) {
			return k.token, nil
		}
		return Token{}, err
	}
	early, life := k.Early, k.Lifetime
	if early <= 0 {
		early = 5 * time.Minute
	}
	if life <= 0 {
		life = 5 * time.Minute
	}
	k.token, k.until = t, at.Add(life)
	if !t.Expires.IsZero() {
		k.until = t.Expires.Add(-early)
	}
	return t, nil
}

// Renew forgets the token.
func (k *Kept) Renew(t Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token.Secret == t.Secret {
		k.token, k.until = Token{}, time.Time{}
	}
}

var (
	_ Renewer = (*Kept)(nil)
	_ Renewer = Told{}
)
