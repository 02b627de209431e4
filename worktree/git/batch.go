package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Object is the header of an object in the output of git cat-file.
type Object struct {
	Name, Kind string
	Size       int64
}

// endOfAnswer is a name that no object can have. Git's answer to it ends an answer to many names.
const endOfAnswer = ".end"

// EachObject calls each for every named object that exists, with a single process. It skips content that each leaves
// unread. An error of each ends the reading.
func (g Runner) EachObject(ctx context.Context, names []string, each func(Object, io.Reader) error) error {
	if len(names) == 0 {
		return nil
	}
	var question strings.Builder
	for _, name := range append(slices.Clip(names), endOfAnswer) {
		question.WriteString("contents " + name + "\n")
	}
	question.WriteString("flush\n")
	read := func(r *bufio.Reader) error { return parseObjects(r, each) }
	return g.Ask(ctx, question.String(), read, "cat-file", "--batch-command", "--buffer")
}

// Objects reads whole objects of one kind. It leaves out objects that are missing or of another kind.
func (g Runner) Objects(ctx context.Context, kind string, names []string) (map[string]string, error) {
	objects := map[string]string{}
	err := g.EachObject(ctx, names, func(o Object, content io.Reader) error {
		if o.Kind != kind {
			return nil
		}
		var text strings.Builder
		_, err := io.Copy(&text, content)
		objects[o.Name] = text.String()
		return err
	})
	return objects, err
}

// parseObjects reads the output of git cat-file until endOfAnswer.
func parseObjects(r *bufio.Reader, each func(Object, io.Reader) error) error {
	for {
		header, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if header == endOfAnswer+" missing\n" {
			return nil
		}
		if strings.HasSuffix(header, " missing\n") {
			continue
		}
		fields := strings.Fields(header)
		if len(fields) != 3 {
			return fmt.Errorf("git cat-file: cannot read header %q", Printable(header))
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("git cat-file: cannot read header %q", Printable(header))
		}
		content := &io.LimitedReader{R: r, N: size}
		if err := each(Object{Name: fields[0], Kind: fields[1], Size: size}, content); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, r, content.N+1); err != nil { // plus the newline after the content
			return fmt.Errorf("git cat-file: %s is cut short: %w", fields[0], err)
		}
	}
}
