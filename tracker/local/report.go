package local

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/tracker"
)

const (
	marker     = "<!-- ralph:reports"
	markerLine = marker + ": written by ralph; write above this line, or below the last report -->"
	maxReport  = 64 << 10 // bytes
)

var (
	runName  = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	edgeLine = pattern.Lazy(`(?m)^<!-- ralph:(report|end) ([A-Za-z0-9][A-Za-z0-9._:-]*) -->[ \t]*\r?$`)
)

// markerAt returns the start of the marker line at or after an offset, or the end of the file.
func markerAt(raw []byte, from int) int {
	for at := from; at < len(raw); {
		i := bytes.Index(raw[at:], []byte(marker))
		if i < 0 {
			break
		}
		if at += i; at == from || raw[at-1] == '\n' {
			return at
		}
		at += len(marker)
	}
	return len(raw)
}

// reportBlock is the position of one run's report in the file, from its first line to the end of its last.
type reportBlock struct {
	run        string
	start, end int
}

// reportBlocks returns the complete reports below the marker line. Text that a person wrote between them does not count.
func reportBlocks(d document) []reportBlock {
	var found []reportBlock
	var open *reportBlock
	for _, m := range edgeLine().FindAllSubmatchIndex(d.raw[d.bodyEnd:], -1) {
		kind, run := string(d.raw[d.bodyEnd+m[2]:d.bodyEnd+m[3]]), string(d.raw[d.bodyEnd+m[4]:d.bodyEnd+m[5]])
		if kind == "report" {
			open = &reportBlock{run: run, start: d.bodyEnd + m[0]}
			continue
		}
		if open != nil && open.run == run {
			open.end = d.bodyEnd + m[1]
			if open.end < len(d.raw) && d.raw[open.end] == '\n' {
				open.end++
			}
			found = append(found, *open)
		}
		open = nil
	}
	return found
}

// lastReport returns the last of the complete reports.
func lastReport(d document) (last reportBlock, ok bool) {
	found := reportBlocks(d)
	if len(found) == 0 {
		return last, false
	}
	return found[len(found)-1], true
}

// endOfReports returns the start of the text below the last report, or the end of the file. After an incomplete report it is the end of
// the file, since the text may be part of that report.
func endOfReports(d document) int {
	last, ok := lastReport(d)
	if !ok || edgeLine().Match(d.raw[last.end:]) {
		return len(d.raw)
	}
	return last.end
}

// setReport writes the report below the marker line. It replaces the last one, or appends it. The rest of the file stays as it is.
func setReport(d document, r tracker.Report) ([]byte, error) {
	if !runName().MatchString(r.Run) {
		return nil, fmt.Errorf("run %q is not a plain name", r.Run)
	}
	text := d.render(r)
	if last, ok := lastReport(d); ok {
		return splice(d.raw, last.start, last.end, text), nil
	}
	out := bytes.Clone(d.raw)
	if len(out) > d.top && out[len(out)-1] != '\n' {
		out = append(out, d.newline...)
	}
	if d.bodyEnd == len(d.raw) {
		out = append(out, d.newline+markerLine+d.newline...)
	}
	out = append(out, d.newline+text...)
	if len(out) > maxFile {
		return nil, errorAt(lineOf(d.raw, d.bodyEnd), "no room for a report; shorten the text below the line %s", marker)
	}
	return out, nil
}

// render formats a report for the file.
func (d document) render(r tracker.Report) string {
	body := strings.ToValidUTF8(r.Body, "\ufffd")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	// Text that looks like ralph's own lines could end the report, or forge another run's.
	body = strings.ReplaceAll(body, "<!-- ralph:", "<! -- ralph:")
	body = strings.Trim(body, "\n")
	if len(body) > maxReport {
		body = tracker.Cut(body, maxReport) + "\n… (shortened)"
	}
	text := fmt.Sprintf("<!-- ralph:report %s -->\n%s\n<!-- ralph:end %s -->\n", r.Run, body, r.Run)
	return strings.ReplaceAll(text, "\n", d.newline)
}

// splice returns a copy of raw with [start, end) replaced.
func splice(raw []byte, start, end int, text string) []byte {
	out := make([]byte, 0, len(raw)-(end-start)+len(text))
	out = append(out, raw[:start]...)
	out = append(out, text...)
	return append(out, raw[end:]...)
}
