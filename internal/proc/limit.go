package proc

import "io"

// Limit passes the first bytes on and counts the others. Its Write never fails: when To fails, nothing more is passed on,
// and Err says why. It is not safe for concurrent use.
type Limit struct {
	To      io.Writer
	Room    int64         // bytes still passed on
	Dropped int64         // bytes that were not
	Err     error         // why To got no more
	Full    chan struct{} // closed when a byte is dropped; nil: nobody waits for that
}

func (l *Limit) Write(p []byte) (int, error) {
	n := int64(0)
	if l.Err == nil {
		n = min(int64(len(p)), l.Room)
	}
	if n > 0 {
		if _, l.Err = l.To.Write(p[:n]); l.Err != nil {
			n = 0
		}
	}
	l.Room -= n
	if dropped := int64(len(p)) - n; dropped > 0 {
		if l.Dropped == 0 && l.Full != nil {
			close(l.Full)
		}
		l.Dropped += dropped
	}
	return len(p), nil
}
