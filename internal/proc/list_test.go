package proc

import (
	"os"
	"slices"
	"testing"
)

func TestList(t *testing.T) {
	t.Parallel()
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p Listed) bool { return p.PID == os.Getpid() })
	if i < 0 || all[i].Parent != os.Getppid() || all[i].Ended {
		t.Errorf("this process is not among %d: %+v", len(all), all[max(i, 0)])
	}
}
