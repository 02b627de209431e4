package leak

const (
	chunk   = 256 << 10 // bytes scanned together
	overlap = 4 << 10   // bytes scanned again with the next chunk, for secrets across the border; more for long values
)

// Scan searches the lines of many files, one file after the other. It is used by one goroutine.
type Scan struct {
	finder *Finder
	found  func(name string)
	name   string
	text   []byte
	done   bool // a secret was found in this file
	fresh  int  // bytes of text not yet scanned
	kept   int  // bytes that are scanned twice
}

// Scan returns a Scan that calls found once for each file with a secret, if the lines of a file are passed consecutively.
func (f *Finder) Scan(found func(name string)) *Scan {
	// An encoding needs at least two bytes per byte of the value; an escape or a dump needs six.
	return &Scan{finder: f, found: found, kept: max(overlap, 3*max(f.exact.longest, f.letters.longest))}
}

// Line scans a line, without its end, of the named file.
func (s *Scan) Line(name string, line []byte) {
	if name != s.name {
		s.End()
		s.name, s.text, s.done = name, s.text[:0], false
	}
	for len(line) > chunk { // a line may be as long as a whole file
		s.add(line[:chunk])
		line = line[chunk:]
	}
	s.add(line)
	s.add([]byte("\n"))
}

func (s *Scan) add(text []byte) {
	if s.done {
		return
	}
	s.text = append(s.text, text...)
	s.fresh += len(text)
	if s.fresh >= max(chunk, s.kept) {
		s.scan()
		kept := s.text[max(0, len(s.text)-s.kept):]
		s.text = s.text[:copy(s.text, kept)]
	}
}

// End scans the rest of the last file.
func (s *Scan) End() {
	if s.fresh > 0 {
		s.scan()
	}
}

func (s *Scan) scan() {
	s.fresh = 0
	if !s.done && s.finder.hasMatch(s.text) {
		s.done = true
		s.found(s.name)
	}
}
