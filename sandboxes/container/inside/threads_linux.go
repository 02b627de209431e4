package inside

import (
	"runtime"
	"sync"
)

// processors is how many the helpers use: they only pass bytes on.
const processors = 2

// threads is more than a helper's goroutines ever block at once in system calls that Go cannot wait for otherwise.
const threads = processors + 10

// startThreads starts all threads that the program will ever need. They count against the container's limit: if a command
// has used that up, the runtime cannot start another one, which ends the program.
func startThreads() {
	runtime.GOMAXPROCS(processors)
	var started sync.WaitGroup
	leave := make(chan struct{})
	started.Add(threads)
	for range threads {
		go func() {
			runtime.LockOSThread() // makes the runtime start another one
			started.Done()
			<-leave
			runtime.UnlockOSThread() // the thread stays, for others
		}()
	}
	started.Wait()
	close(leave)
}
