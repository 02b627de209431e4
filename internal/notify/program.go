package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Program runs a program with the message as JSON on its standard input.
type Program struct {
	Argv []string
	Dir  string
	Env  []string // complete environment
}

// Name implements Channel.
func (Program) Name() string { return "command" }

// Place implements Channel.
func (p Program) Place() string { return strings.Join(append([]string{p.Dir}, p.Argv...), "\x00") }

// Send implements Channel. A program that fails is retried, one that cannot be started is not.
func (p Program) Send(ctx context.Context, m Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return errors.Join(err, errFinal)
	}
	exit, err := proc.Run(ctx, proc.Spec{Argv: p.Argv, Dir: p.Dir, Env: p.Env, Stdin: bytes.NewReader(append(text, '\n'))})
	switch {
	case errors.Is(err, proc.ErrStart):
		return fmt.Errorf("%w: %w", errFinal, err)
	case err != nil:
		return err
	case exit.Code != 0:
		return fmt.Errorf("%s ended with status %d", p.Argv[0], exit.Code)
	}
	return nil
}
