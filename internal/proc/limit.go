package proc

import "io"

// Limit is a writer that passes the first Room bytes on and counts the others. Its Write never fails: after To has failed,
// nothing more is passed on, and Err is the error. It is not safe for concurrent use.
type Limit struct {
	To      io.Writer
	Room    int64         // bytes that may still pass
	Dropped int64         // bytes that did not pass
	Err     error         // the error of To
	Full    chan struct{} // closed when the first byte is dropped; may be nil
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
