package container

import (
	"runtime"
	"sync"
)

// parallel is how many processors the helpers use: they pass bytes on.
const parallel = 2

// threads is more than a helper's goroutines ever block at once, in calls of the system that Go cannot wait for otherwise.
const threads = parallel + 10

// getThreads makes the program have all threads that it will ever need. They count against the container's limit: a command
// that has used that up would keep the runtime from having another one, which ends the program.
func getThreads() {
	runtime.GOMAXPROCS(parallel)
	var there sync.WaitGroup
	leave := make(chan struct{})
	there.Add(threads)
	for range threads {
		go func() {
			runtime.LockOSThread() // to one of its own
			there.Done()
			<-leave
			runtime.UnlockOSThread() // which stays, for others
		}()
	}
	there.Wait()
	close(leave)
}
