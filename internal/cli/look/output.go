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

// output prints what a check of a run writes, while it runs. A nil one prints nothing.
type output struct {
	ui   *screen.Printer
	dir  string   // of the run
	f    *os.File // nil: no check runs, or it has no file here
	line []byte   // that is not complete yet
	said bool     // something has been printed
}

// begin is told what has begun.
func (o *output) begin(e journal.Event) {
	if o == nil || e.Log == "" || e.Log != filepath.Base(e.Log) {
		return
	}
	o.end()
	f, err := os.Open(filepath.Join(o.dir, e.Log))
	if err != nil {
		return // only the latest runs are kept, and those of this host
	}
	if _, err := f.Seek(e.LogFrom, io.SeekStart); err != nil {
		_ = f.Close() // it was not even read
		return
	}
	o.f = f
}

// more prints the lines that have come.
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
		if err != nil { // most often the end, for now
			return
		}
	}
}

// end reports whether the output of the check that has ended was printed, and prints what is left of it then.
func (o *output) end() (said bool) {
	if o == nil || o.f == nil {
		return false
	}
	if said = o.said; said {
		o.more()
		o.print(o.line)
	}
	_ = o.f.Close() // it was only read
	o.f, o.line, o.said = nil, nil, false
	return said
}

func (o *output) print(text []byte) {
	if shown := strings.TrimRight(screen.Clean(string(text)), " \n"); shown != "" {
		o.ui.Printf("%s\n", indent("\n" + shown)[1:])
		o.said = true
	}
}
