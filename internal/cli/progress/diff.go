package progress

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/look"
)

// DiffText is what an issue's branch changes, for a view.
func DiffText(ctx context.Context, p *compose.Parts, key string) (string, error) {
	w, err := look.LeftWork(ctx, p, key)
	if err != nil {
		return "", err
	}
	var text limited
	err = p.Repo.Git().Pipe(ctx, strings.NewReader(""), &text, "diff", "--no-color", "--no-ext-diff", w.Begin+"..."+w.Tip, "--")
	if text.full() {
		err = nil
	}
	return text.String(), err
}

// diffMax is how many bytes of a diff a view takes; nobody reads more there.
const diffMax = 1 << 20

// limited keeps the first bytes that are written, and then refuses the rest.
type limited struct{ bytes.Buffer }

func (l *limited) full() bool { return l.Len() >= diffMax }

func (l *limited) Write(b []byte) (int, error) {
	n, _ := l.Buffer.Write(b[:min(len(b), diffMax-l.Len())])
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
