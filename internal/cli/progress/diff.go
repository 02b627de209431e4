package progress

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/look"
)

// DiffText returns the changes of an issue's branch, for a view. It cuts them off at diffMax.
func DiffText(ctx context.Context, p *compose.Parts, key string) (string, error) {
	w, err := look.LeftWork(ctx, p, key)
	if err != nil {
		return "", err
	}
	spec, _, err := w.Range(ctx, p)
	if err != nil {
		return "", err
	}
	var text []byte
	err = p.Repo.Git().Read(ctx, "", func(out *bufio.Reader) (err error) {
		if text, err = io.ReadAll(io.LimitReader(out, diffMax)); len(text) == diffMax {
			err = errEnough
		}
		return err
	}, "diff", "--no-color", "--no-ext-diff", spec, "--")
	if errors.Is(err, errEnough) {
		err = nil
	}
	return string(text), err
}

// diffMax is the maximum of bytes that a view shows: nobody reads more there.
const diffMax = 1 << 20

var errEnough = errors.New("enough has been read")
