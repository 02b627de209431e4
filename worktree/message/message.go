// Package message rewrites commit objects, so that a forge does not act on their messages or that they carry another name,
// and shortens messages. Its callers are the packages below worktree. All functions are pure.
package message

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// ActsOnForge reports whether [Edit.Apply] would rewrite a commit with this encoding and message because a forge would act on it.
func ActsOnForge(encoding, message string) bool {
	header := ""
	if encoding != "" {
		header = encodingField + encoding
	}
	object := header + "\n\n" + message
	return Edit{Neutralize: true}.Apply(object) != Edit{}.Apply(object)
}

// Edit describes changes of a commit.
type Edit struct {
	Neutralize        bool              // neutralize the message, in an encoding that hides nothing
	Author, Committer string            // "Name <mail>"; empty: unchanged
	Trailers          []string          // lines added at the end of the message, unless it has them
	Renamed           map[string]string // new names of parents, by old name
}

// Apply returns the changed commit object. It always removes control characters from names and message. A changed commit
// loses its signature, which would no longer match.
func (e Edit) Apply(object string) string {
	header, message, ok := strings.Cut(object, "\n\n")
	if !ok {
		return object
	}
	oldLines := strings.Split(header, "\n")
	lines, text, _ := withoutControls(oldLines, message)
	if e.Neutralize || len(e.Trailers) > 0 {
		lines, text = inUTF8(lines, text)
	}
	lines = slices.Clone(lines)
	for i, line := range lines {
		field, value, _ := strings.Cut(line, " ")
		who := map[string]string{"author": e.Author, "committer": e.Committer}[field]
		date := strings.LastIndex(value, "> ")
		switch {
		case field == "parent" && e.Renamed[value] != "":
			lines[i] = "parent " + e.Renamed[value]
		case who != "" && date >= 0:
			lines[i] = field + " " + who + value[date+1:]
		}
	}
	if e.Neutralize {
		text = neutral.Text(shorten(text))
		for _, line := range e.Trailers { // undo for our own trailers: a bot's address looks like a mention
			text = strings.ReplaceAll(text, "\n"+neutral.Text(line)+"\n", "\n"+line+"\n")
		}
	}
	text = withTrailers(text, e.Trailers)
	if text == message && slices.Equal(lines, oldLines) {
		return object
	}
	return strings.Join(Unsigned(lines), "\n") + "\n\n" + text
}

// withTrailers adds the missing trailers, after those at the end of the message if there are any.
func withTrailers(message string, trailers []string) string {
	lines := strings.Split(strings.TrimRight(message, "\n"), "\n")
	oldCount := len(lines)
	for _, line := range trailers {
		if slices.Contains(lines, line) {
			continue
		}
		last := len(lines) - 1
		for last > 0 && isTrailer(lines[last]) {
			last--
		}
		if last == len(lines)-1 || lines[last] != "" {
			lines = append(lines, "")
		}
		lines = append(lines, line)
	}
	if len(lines) == oldCount {
		return message
	}
	return strings.Join(lines, "\n") + "\n"
}

func isTrailer(line string) bool {
	name, _, ok := strings.Cut(line, ": ")
	return ok && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// messageLimit is the number of bytes of a message that are kept: nobody reads more, and rewriting takes time.
const messageLimit = 256 << 10

// shorten returns the message, or its beginning and a note about the rest.
func shorten(message string) string {
	if len(message) <= messageLimit {
		return message
	}
	end := messageLimit - 100
	for !utf8.RuneStart(message[end]) && end > messageLimit-104 {
		end--
	}
	return fmt.Sprintf("%s\n\n(ralph has left out the other %d bytes of this message)\n", message[:end], len(message)-end)
}

// Unsigned removes signatures, which have several lines, and empty lines from a header.
func Unsigned(lines []string) []string {
	var out []string
	signature := false
	for _, line := range lines {
		signature = strings.HasPrefix(line, "gpgsig") || signature && strings.HasPrefix(line, " ")
		if !signature && line != "" {
			out = append(out, line)
		}
	}
	return out
}
