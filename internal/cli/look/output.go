package look

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

// output prints the output of a run's checks while they run. A nil output prints nothing.
type output struct {
	ui   *screen.Printer
	dir  string   // the run's folder
	f    *os.File // nil: no check runs, or its log is not here
	line []byte   // an incomplete line
	said bool     // some output of this check was printed
}

// begin starts to follow the log that the event names, if it names one.
func (o *output) begin(e journal.Event) {
	if o == nil || e.Log == "" || e.Log != filepath.Base(e.Log) {
		return
	}
	o.end()
	f, err := os.Open(filepath.Join(o.dir, e.Log))
	if err != nil {
		return // an older run's log was removed, or the run is on another host
	}
	if _, err := f.Seek(e.LogFrom, io.SeekStart); err != nil {
		_ = f.Close() // nothing was read
		return
	}
	o.f = f
}

// more prints new complete lines.
func (o *output) more() {
	if o == nil || o.f == nil {
		return
	}
	part := make([]byte, 64<<10)
	for {
		n, err := o.f.Read(part)
		o.line = append(o.line, part[:n]...)
		end := bytes.LastIndexByte(o.line, '\n') + 1
		if len(o.line) > len(part) {
			end = len(o.line)
		}
		o.print(o.line[:end])
		o.line = append(o.line[:0], o.line[end:]...)
		if err != nil { // usually the end of the file, for now
			return
		}
	}
}

// end prints the rest of the ended check's output, if some of it was printed before, and reports that.
func (o *output) end() (said bool) {
	if o == nil || o.f == nil {
		return false
	}
	if said = o.said; said {
		o.more()
		o.print(o.line)
	}
	_ = o.f.Close() // opened for reading only
	o.f, o.line, o.said = nil, nil, false
	return said
}

func (o *output) print(text []byte) {
	if shown := strings.TrimRight(screen.Clean(string(text)), " \n"); shown != "" {
		o.ui.Printf("%s\n", o.ui.Hang("\n"+shown, 0, logIndent)[1:])
		o.said = true
	}
}
