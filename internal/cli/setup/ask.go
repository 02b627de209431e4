package setup

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/words"
)

// asker puts questions to a person, one line each, so that it works over any terminal and ends cleanly on Ctrl-C.
type asker struct {
	ui    *screen.Printer
	lines <-chan string // closed at the end of the input
}

// option is one possible answer.
type option struct {
	name, note string
	proposed   bool // in the place of the first
}

// newAsker starts reading lines. The reader ends with the input, or when ctx does and a line comes: a read from a
// terminal cannot be called off, so after Ctrl-C it ends with the process.
func newAsker(ctx context.Context, ui *screen.Printer, in io.Reader) *asker {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return &asker{ui: ui, lines: lines}
}

// line prints a prompt and reads the answer. The end of the input is as Ctrl-C.
func (a *asker) line(ctx context.Context, prompt string) (string, error) {
	a.ui.Prompt(prompt)
	select {
	case <-ctx.Done():
		a.ui.Prompt("\n")
		return "", context.Cause(ctx)
	case s, ok := <-a.lines:
		if !ok {
			a.ui.Prompt("\n")
			return "", exit.ErrInterrupted
		}
		return strings.TrimSpace(screen.CleanLine(s)), nil
	}
}

// choose asks for one of several, by number or name. Nothing typed is the first.
func (a *asker) choose(ctx context.Context, question string, options []option) (string, error) {
	a.ui.Prompt(a.ui.PaintErr(screen.Bold, question) + "\n")
	names, proposed := make([]string, len(options)), options[0].name
	for i, o := range options {
		if names[i] = o.name; o.proposed {
			proposed = o.name
		}
		text := "  " + strconv.Itoa(i+1) + "  " + o.name
		if o.note != "" {
			text += a.ui.PaintErr(screen.Dim, "  "+o.note)
		}
		a.ui.Prompt(text + "\n")
	}
	for {
		answer, err := a.line(ctx, "  number or name ["+proposed+"]: ")
		if err != nil {
			return "", err
		}
		if answer == "" {
			return proposed, nil
		}
		for i, name := range names {
			if answer == name || answer == strconv.Itoa(i+1) {
				return name, nil
			}
		}
		a.ui.Prompt("  " + strconv.Quote(answer) + " is none of these" + exit.Suggest(answer, names, "", "type a number") + "\n")
	}
}

// text asks for free text; nothing typed is the default.
func (a *asker) text(ctx context.Context, question, note, byDefault string) (string, error) {
	a.ui.Prompt(a.ui.PaintErr(screen.Bold, question) + a.ui.PaintErr(screen.Dim, "  "+note) + "\n")
	shown := "  > "
	if byDefault != "" {
		shown = "  [" + byDefault + "] > "
	}
	answer, err := a.line(ctx, shown)
	if err == nil && answer == "" {
		answer = byDefault
	}
	return answer, err
}

// shellLine asks for one shell line; nothing typed is the proposed ones.
func (a *asker) shellLine(ctx context.Context, question string, proposed []string) ([]string, error) {
	note, byDefault := "Enter: as shown", strings.Join(proposed, " && ")
	if byDefault == "" {
		note = "Enter: none, for now"
	}
	line, err := a.text(ctx, question, note, byDefault)
	switch {
	case err != nil || line == "":
		return nil, err
	case line == byDefault:
		return proposed, nil
	}
	return []string{line}, nil
}

// words asks for a command line until it is one.
func (a *asker) words(ctx context.Context, question, note string) ([]string, error) {
	for {
		answer, err := a.text(ctx, question, note, "")
		if err != nil {
			return nil, err
		}
		list, err := words.Split(answer)
		if err == nil && len(list) == 0 {
			err = errors.New("a program is needed")
		}
		if err == nil {
			return list, nil
		}
		a.ui.Prompt("  " + err.Error() + "\n")
	}
}

// yes asks a question whose safe answer, the default, is no.
func (a *asker) yes(ctx context.Context, question, note string) (bool, error) {
	a.ui.Prompt(a.ui.PaintErr(screen.Bold, question) + a.ui.PaintErr(screen.Dim, "  "+note) + "\n")
	for {
		answer, err := a.line(ctx, "  yes or no [no]: ")
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, nil
		case "", "n", "no":
			return false, nil
		}
	}
}
