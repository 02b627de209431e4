package dashboard

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Limits of a diff's page.
const (
	diffBytes = 1 << 20
	diffLines = 4000
	diffNames = 1000 // files listed without their lines
	diffWidth = 1000 // bytes per line
)

// fileDiff is the change of a file in git's patch.
type fileDiff struct {
	Path, Old      string // untrusted; Old is empty unless the file was renamed
	Note           string // untrusted; other parts of the patch, such as a new mode
	Added, Removed int
	Lines          []diffLine
}

type diffLine struct {
	Kind     string // add, del, hunk, same
	Old, New int    // line numbers; 0: none
	Text     string // untrusted
	ID       string // id of the line's element on the page
	Comment  bool   // the form for a comment is below this line
}

// Number returns the line's number in the new file, or in the old one for a removed line.
func (l diffLine) Number() int {
	if l.New > 0 {
		return l.New
	}
	return l.Old
}

// Sign returns the sign of the line in the patch.
func (l diffLine) Sign() string {
	switch l.Kind {
	case "add":
		return "+"
	case "del":
		return "−"
	}
	return ""
}

// Name returns the path with deceptive characters made visible.
func (f fileDiff) Name() string { return visible(f.Path) }

// parseDiff reads git's numstat, which names all files, and its patch. It never fails: it ignores what it does not know. cut
// means that lines are missing; their files are listed without lines, and more counts files that are not listed at all.
// short means that the patch itself was cut, and count is the number of files, of which numstat may lack some.
func parseDiff(patch []byte, count int, short bool) (out []fileDiff, more int, cut bool) {
	all, out, cut := readDiff(patch)
	more = max(0, count-len(all))
	cut = cut || short || more > 0
	shown := 0
	for i := range out {
		switch two := i > 0 && out[i].Path == out[i-1].Path; {
		case two: // git shows a file that becomes a link twice, but counts it once
			out[i-1].Added, out[i].Removed = 0, 0
		case shown < len(all):
			out[i].Added, out[i].Removed = all[shown].Added, all[shown].Removed
			shown++
		}
	}
	for i, f := range all[shown:] {
		if i >= diffNames || !cut {
			more++
			continue
		}
		f.Note = "not shown"
		out = append(out, f)
	}
	return out, more, cut
}

// numstat reads "3\t1\tpath". For binary files the numbers are "-".
func numstat(s string) (f fileDiff, ok bool) {
	fields := strings.SplitN(s, "\t", 3)
	if len(fields) < 3 {
		return f, false
	}
	var one, two error
	f.Added, one = strconv.Atoi(fields[0])
	f.Removed, two = strconv.Atoi(fields[1])
	f.Path = unquoted(fields[2])
	return f, one == nil && two == nil || fields[0] == "-" && fields[1] == "-"
}

func readDiff(patch []byte) (all, out []fileDiff, cut bool) {
	var f *fileDiff
	var oldLine, newLine, oldLeft, newLeft, shown int
	for raw := range bytes.Lines(patch) {
		s := strings.TrimSuffix(string(raw), "\n")
		inside := oldLeft > 0 || newLeft > 0
		switch {
		case !inside && strings.HasPrefix(s, "diff --git "):
			out = append(out, fileDiff{Path: pathOf(s)})
			f = &out[len(out)-1]
			continue
		case f == nil:
			if stat, ok := numstat(s); ok {
				all = append(all, stat)
			}
			continue
		case !inside:
			f.head(s, &oldLine, &newLine, &oldLeft, &newLeft)
			continue
		}
		l := diffLine{Kind: "same", Text: width(s)}
		switch {
		case strings.HasPrefix(s, "\\"): // no newline at the end of the file
			continue
		case strings.HasPrefix(s, "+"):
			l.Kind, l.New = "add", newLine
			f.Added++
			newLine, newLeft = newLine+1, newLeft-1
		case strings.HasPrefix(s, "-"):
			l.Kind, l.Old = "del", oldLine
			f.Removed++
			oldLine, oldLeft = oldLine+1, oldLeft-1
		default:
			l.Old, l.New = oldLine, newLine
			oldLine, newLine, oldLeft, newLeft = oldLine+1, newLine+1, oldLeft-1, newLeft-1
		}
		if shown++; shown > diffLines {
			return all, out, true
		}
		l.ID = fmt.Sprintf("f%d-%s%d", len(out), l.Kind[:1], l.Number())
		f.Lines = append(f.Lines, l)
	}
	return all, out, false
}

// head reads a line of the patch outside of the hunks' lines.
func (f *fileDiff) head(s string, oldLine, newLine, oldLeft, newLeft *int) {
	if rest, ok := strings.CutPrefix(s, "@@ -"); ok {
		ranges, after, _ := strings.Cut(rest, " @@")
		before, now, _ := strings.Cut(ranges, " +")
		*oldLine, *oldLeft = hunk(before)
		*newLine, *newLeft = hunk(now)
		f.Lines = append(f.Lines, diffLine{Kind: "hunk", Text: width(" @@ -" + ranges + " @@" + after)})
		return
	}
	for prefix, to := range map[string]*string{"rename from ": &f.Old, "rename to ": &f.Path} {
		if name, ok := strings.CutPrefix(s, prefix); ok {
			*to = unquoted(name)
		}
	}
	if name, ok := strings.CutPrefix(s, "+++ "); ok {
		if name, ok = strings.CutPrefix(unquoted(strings.TrimSuffix(name, "\t")), "b/"); ok {
			f.Path = name
		}
	}
	for _, prefix := range []string{"new file", "deleted file", "old mode", "new mode", "Binary files"} {
		if strings.HasPrefix(s, prefix) {
			f.Note = strings.TrimPrefix(f.Note+", "+line(s), ", ")
		}
	}
}

// hunk reads "12,3" or "12".
func hunk(s string) (first, n int) {
	a, b, more := strings.Cut(s, ",")
	first, _ = strconv.Atoi(a)
	if n = 1; more {
		n, _ = strconv.Atoi(b)
	}
	return max(0, first), max(0, n)
}

// pathOf returns the path in the first line of a file's patch. Later lines are more precise.
func pathOf(s string) string {
	_, name, found := strings.Cut(s, " b/")
	if !found {
		_, name, _ = strings.Cut(s, ` "b/`)
		name = unquoted(`"` + name)
	}
	return name
}

// unquoted returns a path without git's quotes around unusual characters.
func unquoted(s string) string {
	if name, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return name
	}
	return s
}

// width returns the text of a patch line without its sign, limited to diffWidth.
func width(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToValidUTF8(s[1:], "�")
	if len(s) > diffWidth {
		s = strings.ToValidUTF8(s[:diffWidth], "") + "…"
	}
	return visible(strings.TrimSuffix(s, "\r"))
}

// visible replaces characters that hide or reorder text, as in <U+202E>: a reviewer judges the code by what is visible.
func visible(s string) string {
	if !strings.ContainsFunc(s, isDeceptive) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isDeceptive(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isDeceptive(r rune) bool { return r != '\t' && unicode.IsControl(r) || neutral.Invisible(r) }

// diffModel is the data of the page with a run's diff.
type diffModel struct {
	Project string
	Run     journal.Record
	Files   []fileDiff
	More    int // number of files not in Files
	Cut     bool
	At      string // id of the line with the form for a comment; empty: none
	Problem string
}

// Count returns the number of files, as far as known.
func (m diffModel) Count() int { return len(m.Files) + m.More }

func (p *Pages) diff(w http.ResponseWriter, r *http.Request) error {
	rec, err := p.record(r)
	if err != nil {
		return err
	}
	m := diffModel{Project: r.PathValue("project"), Run: rec, At: r.FormValue("at")}
	if err := p.reading(r.Context(), func() error {
		patch, count, cut, err := p.Service.Diff(r.Context(), m.Project, rec, diffBytes)
		if err != nil {
			m.Problem = line(service.OneLine(err))
		}
		m.Files, m.More, m.Cut = parseDiff(patch, count, cut)
		return nil
	}); err != nil {
		return err
	}
	for i := range m.Files {
		for j := range m.Files[i].Lines {
			l := &m.Files[i].Lines[j]
			l.Comment = l.ID != "" && l.ID == m.At
		}
	}
	v := view{Title: "Changes of " + line(rec.Key), Project: m.Project, Tab: "runs"}
	p.render(w, http.StatusOK, "diff.html", v.with(m))
	return nil
}
