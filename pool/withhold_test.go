package pool

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/agents"
)

type closing struct{ bytes.Buffer }

func (*closing) Close() error { return nil }

func TestStreamsAreMasked(t *testing.T) {
	t.Parallel()
	const value = "a-value-to-be-kept"
	s := NewSecrets(value)
	text := "first " + value + "\nno end " + strings.Repeat("x", maskedLine) + value + strings.Repeat("y", 3*maskedLine) + value + "\nlast " + value
	want := strings.ReplaceAll(text, value, hidden)
	for _, size := range []int{1, 7, 4096, len(text)} {
		var to closing
		w := s.stream(&to)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if to.String() != want {
			t.Errorf("in pieces of %d bytes: %d bytes, want %d", size, to.Len(), len(want))
		}
	}
	var log bytes.Buffer
	logger := zerolog.New(s.Log(&log))
	logger.Warn().Str("x", value).Msg("m")
	if got := log.String(); !strings.Contains(got, `"x":"[hidden]"`) {
		t.Errorf("log %s", got)
	}
}

func TestSecretsGrow(t *testing.T) {
	t.Parallel()
	s := NewSecrets("the-first-value", "short", " ")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				v := fmt.Sprintf("value-%d-%d-of-many", i, n)
				s.Add(v, "the-last-value")
				if !s.in("x " + v) {
					t.Errorf("%s is not found", v)
				}
			}
		})
	}
	wg.Wait()
	if len(s.values) != 82 || !s.in("the-first-value") || s.in("short") {
		t.Errorf("%d values", len(s.values))
	}
	for n := range maxSecrets {
		s.Add(fmt.Sprintf("later-value-%d", n))
	}
	if len(s.values) != maxSecrets || s.in("the-first-value") || !s.in("later-value-0") {
		t.Errorf("%d values", len(s.values))
	}
}

// The credential that is used for the sandbox is withheld, also when its owner has renewed it meanwhile.
func TestCredentialsOfTheServiceAreWithheld(t *testing.T) {
	t.Parallel()
	s := NewSecrets()
	secret := told(agents.Service{Secret: func(context.Context) (string, error) { return "renewed-credential", nil }}, s)
	if got, err := secret(t.Context()); got != "renewed-credential" || err != nil || !s.in("a renewed-credential") {
		t.Errorf("%q, %v", got, err)
	}
	p := &Pool{cfg: Config{Agent: agents.Claude{}, Network: Network{User: agents.User{Env: []string{"ANTHROPIC_API_KEY=the-key-of-the-user"}}}}, secrets: s}
	p.learn()
	if !s.in("the-key-of-the-user") {
		t.Error("the agent's own key is not withheld")
	}
}
