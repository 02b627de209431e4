package setup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/words"
)

// asker asks a person, one line per question, so that it works on any terminal and ends cleanly at Ctrl-C.
type asker struct {
	ui    *screen.Printer
	lines <-chan string // closed at the end of the input
}

// option is a possible answer.
type option struct {
	name, note string
	proposed   bool // the default, in place of the first option
}

// newAsker starts to read lines. The goroutine ends with the input, or with the first line after ctx has ended: a read from a
// terminal cannot be canceled, so after Ctrl-C it lasts as long as the process.
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

// line prints a prompt and reads the answer. The end of the input counts as Ctrl-C.
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

// choose asks for an option, by number or name. An empty answer is the proposed or first one.
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
		a.ui.Prompt("  " + strconv.Quote(answer) + " is not in the list" + exit.Suggest(answer, names, "", "type a number") + "\n")
	}
}

// text asks for free text. An empty answer is the default.
func (a *asker) text(ctx context.Context, question, note, byDefault string) (string, error) {
	a.ui.Prompt(a.ui.PaintErr(screen.Bold, question) + a.ui.PaintErr(screen.Dim, "  "+note) + "\n")
	shown := "  > "
	if byDefault != "" {
		shown = screen.WrapLine("  ["+byDefault+"] >", 3, cmp.Or(a.ui.Width(), 80)) + " "
	}
	answer, err := a.line(ctx, shown)
	if err == nil && answer == "" {
		answer = byDefault
	}
	return answer, err
}

// shellLine asks for a shell line. An empty answer is the proposed lines, which reasons explain.
func (a *asker) shellLine(ctx context.Context, question string, proposed []string, reasons ...string) ([]string, error) {
	note, byDefault := "Enter: the proposal", strings.Join(proposed, " && ")
	if byDefault == "" {
		note = "Enter: none, for now"
	}
	for _, reason := range reasons {
		note += "\n" + screen.WrapLine("  "+reason, 2, cmp.Or(a.ui.Width(), 80))
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

// words asks for a command line, until the answer is valid.
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

// yes asks a question whose default is the safe answer, no.
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
