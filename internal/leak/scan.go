package leak

const (
	chunk   = 256 << 10 // bytes that are looked at together
	overlap = 4 << 10   // of them again with the next ones, for what stands across the border; more for long values
)

// Scan looks at lines of many files, one after the other. It belongs to one goroutine.
type Scan struct {
	finder *Finder
	found  func(name string)
	name   string
	text   []byte
	done   bool // the file is known to carry a secret
	fresh  int  // bytes of text that were not looked at yet
	kept   int  // bytes that are looked at again
}

// Scan returns a Scan that calls found for each file in which there is a secret, once while its lines come one after the
// other.
func (f *Finder) Scan(found func(name string)) *Scan {
	// A form has at least two bytes of each byte of the value, and an escape or a dump has six.
	return &Scan{finder: f, found: found, kept: max(overlap, 3*max(f.exact.longest, f.letters.longest))}
}

// Line takes a line, without its end, of the file of that name.
func (s *Scan) Line(name string, line []byte) {
	if name != s.name {
		s.End()
		s.name, s.text, s.done = name, s.text[:0], false
	}
	for len(line) > chunk { // a line may be as long as a file
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
		s.look()
		kept := s.text[max(0, len(s.text)-s.kept):]
		s.text = s.text[:copy(s.text, kept)]
	}
}

// End looks at what is left of the last file.
func (s *Scan) End() {
	if s.fresh > 0 {
		s.look()
	}
}

func (s *Scan) look() {
	s.fresh = 0
	if !s.done && s.finder.in(s.text) {
		s.done = true
		s.found(s.name)
	}
}
