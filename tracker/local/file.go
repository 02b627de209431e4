package local

import (
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// file is one parsed issue file.
type file struct {
	header
	doc   document
	front frontMatter
}

// parse parses a file. Its errors have a line.
func parse(raw []byte) (file, error) {
	d, err := splitDocument(raw)
	if err != nil {
		return file{doc: d}, err
	}
	front, err := parseFront(d)
	if err != nil {
		return file{doc: d}, err
	}
	h, err := readHeader(front)
	if err != nil {
		return file{doc: d}, err
	}
	if n := slices.IndexFunc(front.slips(), slip.keeps); n >= 0 { // otherwise the issue would be worked too early
		return file{doc: d}, front.slips()[n].error()
	}
	f := file{header: h, doc: d, front: front}
	if title := f.issueTitle(""); len(title) > tracker.MaxTitle {
		return file{doc: d}, errorAt(1, "its title has %d bytes; at most %d are allowed", len(title), tracker.MaxTitle)
	}
	return f, nil
}

// issueTitle returns the issue's title: that of the front matter, else the first heading, else the file's name.
func (f file) issueTitle(name string) string {
	if f.title != "" {
		return f.title
	}
	if h := heading(f.doc.text()); h != "" {
		return h
	}
	return strings.TrimSuffix(name, ".md")
}
