package proc

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// Waiting for a process blocks no thread of this one.
func TestNoThreadWaits(t *testing.T) {
	t.Parallel()
	const many = 100
	read, write := io.Pipe()
	var all, started sync.WaitGroup
	started.Add(many)
	for range many {
		all.Go(func() {
			s := Spec{Argv: []string{"cat"}, Env: path(), Stdin: io.MultiReader(strings.NewReader("x"), read)}
			s.Stdout = writerFunc(func(b []byte) (int, error) { started.Done(); return len(b), nil })
			run(t, s)
		})
	}
	started.Wait()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) >= many {
		t.Errorf("%d threads for %d processes, %v", len(threads), many, err)
	}
	_ = write.Close()
	all.Wait()
}
