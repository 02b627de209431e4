package dashboard

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// Limits of reading logs.
const (
	logShown    = 200      // lines per page
	logRange    = 1 << 20  // bytes read per page
	searchRange = 32 << 20 // bytes searched per page
	lineMax     = 1 << 20  // bytes per line; longer ones are cut
	queryMax    = 200      // bytes of the search text
)

// logPage is a section of a file in a run's folder.
type logPage struct {
	File  string
	Size  int64
	From  int64 // start offset in bytes
	To    int64 // end offset
	Lines []logLine
}

// Earlier reports whether the file has more text before the section.
func (l logPage) Earlier() bool { return l.From > 0 }

// Later reports whether the file has more text after the section.
func (l logPage) Later() bool { return l.To < l.Size }

// Percent returns the position of the section's end in the file.
func (l logPage) Percent() int64 { return 100 * l.To / max(1, l.Size) }

type logLine struct {
	At   int64     // offset of the line
	Time time.Time // zero: unknown
	Kind string
	Text string // cleaned untrusted text
	Tone string
}

// openLog opens a regular file in a run's folder, but no link or other path. It returns a nil file without an error if the
// folder or the events are gone.
func openLog(dir, name string) (*os.File, int64, error) {
	switch {
	case name != filepath.Base(name) || !filepath.IsLocal(name):
		return nil, 0, fs.ErrNotExist
	case dir == "":
		return nil, 0, nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && name == journal.EventsFile:
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fs.ErrNotExist
	}
	f, err := root.Open(name)
	return f, info.Size(), err
}

// logFiles returns the names of the files in a run's folder.
func logFiles(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "stop" && len(names) < pageLimit {
			names = append(names, e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { // the events first, then the raw streams
		return strings.Compare(strconv.FormatBool(b == journal.EventsFile), strconv.FormatBool(a == journal.EventsFile))
	})
	return names
}

// lines reads lines and cuts each at lineMax.
type lines struct {
	r    *bufio.Reader
	at   int64 // offset of the next line
	text []byte
}

func newLines(r io.Reader, at int64) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10), at: at} }

// next returns a line without its line end, and its offset. The text is valid until the next call.
func (l *lines) next() (text []byte, at int64, err error) {
	at, l.text = l.at, l.text[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.at += int64(len(part))
		l.text = append(l.text, part[:min(len(part), lineMax-len(l.text))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && l.at > at:
			err = nil
		}
		return bytes.TrimRight(l.text, "\r\n"), at, err
	}
}

// page reads lines from an offset. It skips a line that begins before the offset. With a query it returns only lines that
// contain it.
func page(dir, name string, from int64, query string) (logPage, error) {
	f, size, err := openLog(dir, name)
	if err != nil || f == nil {
		return logPage{File: name}, err
	}
	defer f.Close()
	from = min(max(0, from), size)
	begin := max(0, from-1)
	limit := int64(logRange)
	if query != "" {
		limit = searchRange
	}
	in := newLines(io.NewSectionReader(f, begin, limit+lineMax), begin)
	if begin > 0 || from > 0 {
		if _, _, err := in.next(); err != nil && !errors.Is(err, io.EOF) {
			return logPage{}, err
		}
	}
	out := logPage{File: name, Size: size, From: in.at}
	find := newFinder(name, query)
	for len(out.Lines) < logShown && in.at < from+limit {
		raw, at, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return logPage{}, err
		}
		if shown, ok := find.line(raw, at); ok {
			out.Lines = append(out.Lines, shown)
		}
	}
	out.To = min(in.at, size)
	return out, nil
}

// tail reads the last lines of a file.
func tail(dir, name string, most int) (logPage, error) { return before(dir, name, -1, most) }

// before reads the last lines before an offset. A negative offset means the end of the file.
func before(dir, name string, end int64, most int) (logPage, error) {
	f, size, err := openLog(dir, name)
	if err != nil || f == nil {
		return logPage{File: name}, err
	}
	defer f.Close()
	if end < 0 || end > size {
		end = size
	}
	begin := max(0, end-logRange)
	all := make([]byte, end-begin)
	n, err := f.ReadAt(all, begin)
	if err != nil && !errors.Is(err, io.EOF) {
		return logPage{}, err
	}
	out := logPage{File: name, Size: size, From: begin, To: end}
	find := newFinder(name, "")
	show := func(raw []byte, at int64) {
		out.From = at
		if shown, ok := find.line(bytes.TrimRight(raw, "\r\n"), at); ok {
			out.Lines = append(out.Lines, shown)
		}
	}
	for to := n; to > 0 && len(out.Lines) < most; {
		from := 1 + bytes.LastIndexByte(all[:to-1], '\n')
		if from == 0 && begin > 0 { // the line begins before the bytes read
			if to == n {
				return out, longLine(f, begin, show, &out)
			}
			break
		}
		show(all[from:to], begin+int64(from))
		to = from
	}
	slices.Reverse(out.Lines)
	return out, nil
}

// longLine shows the line that contains the offset. If the line begins more than searchRange before it, the page ends inside
// the line.
func longLine(f io.ReaderAt, at int64, show func([]byte, int64), out *logPage) error {
	part := make([]byte, logRange)
	for least := max(0, at-searchRange); at > least; {
		from := max(least, at-logRange)
		part = part[:at-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return err
		}
		n := bytes.LastIndexByte(part, '\n')
		if n < 0 && from > 0 {
			at, out.From = from, from
			continue
		}
		begin := from + int64(n) + 1
		line := make([]byte, lineMax)
		n, err := f.ReadAt(line, begin)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		show(line[:n], begin)
		return nil
	}
	return nil
}

// finder formats the lines of a file and searches them, ignoring case.
type finder struct {
	events bool
	query  string
	raw    []byte // the query as encoded in a line of JSON
	lower  []byte
}

func newFinder(name, query string) *finder {
	f := &finder{events: name == journal.EventsFile, query: strings.ToLower(query)}
	if quoted, err := json.Marshal(f.query); err == nil && f.events {
		f.raw = quoted[1 : len(quoted)-1]
	} else {
		f.raw = []byte(f.query)
	}
	return f
}

// line formats a line. It returns false for a line that is not shown; most of these are recognised without decoding.
func (f *finder) line(raw []byte, at int64) (logLine, bool) {
	if f.query != "" {
		f.lower = append(f.lower[:0], raw...)
		for i, c := range f.lower {
			if 'A' <= c && c <= 'Z' {
				f.lower[i] = c + 'a' - 'A'
			}
		}
		if !bytes.Contains(f.lower, f.raw) {
			return logLine{}, false
		}
	}
	if !f.events {
		return logLine{At: at, Text: text(string(raw))}, true
	}
	e, ok := event(raw)
	if !ok {
		if e, ok = eventOfCut(raw); !ok {
			return logLine{}, false
		}
	}
	l := logLine{At: at, Time: e.Time, Kind: string(e.Kind), Text: text(said(e)), Tone: toneOf(e)}
	if e.Source != "" {
		l.Kind = e.Source
	}
	return l, f.query == "" || strings.Contains(strings.ToLower(l.Kind+" "+said(e)), f.query)
}

func event(raw []byte) (e journal.Event, ok bool) {
	return e, json.Unmarshal(raw, &e) == nil && e.Kind != ""
}

// eventOfCut decodes an event whose line was cut at lineMax, as far as its text is shown. The long part of an event is its
// text or the output of a command.
func eventOfCut(raw []byte) (e journal.Event, ok bool) {
	if len(raw) < lineMax {
		return e, false
	}
	raw = raw[:6*textLimit]                                   // an escape takes six bytes
	if n := bytes.LastIndexByte(raw, '\\'); n > len(raw)-12 { // do not split an escape or a surrogate pair
		raw = raw[:n]
	}
	for _, rest := range []string{`"}`, `"}}`} {
		if e, ok = event(append(slices.Clip(raw), rest...)); ok {
			return e, true
		}
	}
	return e, false
}

// said returns an event in words.
func said(e journal.Event) string {
	switch e.Kind {
	case journal.EventStage:
		return string(e.Stage)
	case journal.EventStarted:
		return fmt.Sprintf("attempt %d: %s on %s", e.Attempt, e.Title, e.Branch)
	case journal.EventCommits:
		return fmt.Sprintf("%d new", e.Commits)
	case journal.EventIteration:
		return strconv.Itoa(e.Iteration)
	case journal.EventUsage:
		if e.Usage != nil {
			return fmt.Sprintf("iteration %d: %s, %s", e.Iteration, money(*e.Usage), formatDuration(seconds(e.Elapsed)))
		}
	case journal.EventGate, journal.EventSetup, journal.EventAfter:
		if c := e.Check; c != nil {
			return fmt.Sprintf("%s: %s\n%s", c.Command, c.Ending(), c.Tail)
		}
	case journal.EventEnded:
		if e.Reason != nil && *e.Reason != (journal.Reason{}) {
			return string(e.Outcome) + ": " + report.Reason(*e.Reason)
		}
		return string(e.Outcome)
	case journal.EventSkipped, journal.EventProblem:
		if e.Skip != nil {
			return report.Skip(*e.Skip)
		}
	}
	return e.Text
}

func toneOf(e journal.Event) string {
	switch {
	case e.Kind == journal.EventWarning || e.Kind == journal.EventProblem || e.Kind == journal.EventRefused:
		return "warn"
	case e.Check != nil && !e.Check.Passed():
		return "bad"
	case e.Check != nil:
		return "ok"
	case e.Kind == journal.EventEnded:
		return tone(e.Outcome)
	case e.Kind == journal.EventStage || e.Kind == journal.EventIteration:
		return "info"
	}
	return "plain"
}

// logModel is the data of the page of a run's log.
type logModel struct {
	Project string
	Run     journal.Record
	Files   []string
	Query   string
	Log     logPage
}

// log shows a section of a file: with ?q= lines that contain the text, from ?at= on; with ?before= the section before that
// offset; otherwise the end.
func (p *Pages) log(w http.ResponseWriter, r *http.Request) error {
	rec, err := p.record(r)
	if err != nil {
		return err
	}
	m := logModel{Project: r.PathValue("project"), Run: rec, Files: logFiles(rec.Dir), Query: strings.TrimSpace(r.FormValue("q"))}
	if len(m.Query) > queryMax {
		m.Query = m.Query[:queryMax]
	}
	file := cmp.Or(r.FormValue("file"), journal.EventsFile)
	at, atErr := strconv.ParseInt(r.FormValue("at"), 10, 64)
	end, endErr := strconv.ParseInt(r.FormValue("before"), 10, 64)
	if err := p.reading(r.Context(), func() error {
		switch {
		case m.Query != "" || atErr == nil:
			m.Log, err = page(rec.Dir, file, at, m.Query)
		case endErr == nil:
			m.Log, err = before(rec.Dir, file, max(0, end), logShown)
		default:
			m.Log, err = tail(rec.Dir, file, logShown)
		}
		return err
	}); err != nil {
		return err
	}
	v := view{Title: "Log of " + line(rec.Key), Project: m.Project, Tab: "runs"}
	p.render(w, http.StatusOK, "log.html", v.with(m))
	return nil
}
