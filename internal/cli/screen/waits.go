package screen

import (
	"cmp"
	"sync"
	"time"
)

// NoteWaits returns a function that is called when a wait for a remote begins, and whose result is called when it has ended. The first
// wait that lasts longer than patience (0: 5 seconds) is noted.
func (p *Printer) NoteWaits(patience time.Duration) func(remote string) (end func()) {
	var once sync.Once
	return func(remote string) func() {
		noted := make(chan struct{})
		timer := time.AfterFunc(cmp.Or(patience, 5*time.Second), func() {
			defer close(noted)
			once.Do(func() { p.Note("waiting for remote %s", CleanLine(remote)) })
		})
		return func() {
			if !timer.Stop() {
				<-noted
			}
		}
	}
}
