// Command cmd serves the mock model on loopback until it is interrupted, to try a coding CLI by hand:
//
//	go run ./e2e/mockmodel/cmd -scenario write
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mockmodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("mockmodel", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:0", "loopback `address` to listen on")
	scenario := flags.String("scenario", "commit", "`name` of the scenario for paths without /s/<name>")
	file := flags.String("scenarios", "", "JSON `file` with more scenarios")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := mockmodel.Options{Scenario: *scenario}
	if *file != "" {
		f, err := os.Open(*file)
		if err != nil {
			return err
		}
		defer f.Close()
		if o.Scenarios, err = mockmodel.Parse(f); err != nil {
			return fmt.Errorf("%s: %w", *file, err)
		}
	}
	s := mockmodel.New(o)
	defer s.Close()
	url, err := s.Listen(*addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, url)
	<-ctx.Done()
	return nil
}
