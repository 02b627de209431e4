package config

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// TestKeysMatchConfig checks that each key has a field with the type of its default, and each field a key.
func TestKeysMatchConfig(t *testing.T) {
	t.Parallel()
	fields := map[string]reflect.Type{}
	for f := range reflect.TypeFor[Config]().Fields() {
		fields[strings.ToLower(f.Name)] = f.Type
	}
	for _, k := range keys.All() {
		if got, want := reflect.TypeOf(k.Default), fields[k.Field()]; got != want {
			t.Errorf("key %s: default is %v, field is %v", k.Name, got, want)
		}
		delete(fields, k.Field())
	}
	if len(fields) > 0 {
		t.Errorf("fields without a key: %v", fields)
	}
}

// leaning matches a help text that refers to another one.
var leaning = regexp.MustCompile(`^(and|its|their|the same)\b|^\w+ (they|them)\b|\b(holds|prints|review|sign|signs) (it|them)\b|\bthat (it|they) counts?\b|\ball these\b`)

func TestKeysAreSound(t *testing.T) {
	t.Parallel()
	kinds := map[keys.Kind]reflect.Type{
		keys.Text: reflect.TypeFor[string](), keys.Path: reflect.TypeFor[string](), keys.Float: reflect.TypeFor[float64](),
		keys.Bool: reflect.TypeFor[bool](), keys.Duration: reflect.TypeFor[time.Duration](),
		keys.Names: reflect.TypeFor[[]string](), keys.Lines: reflect.TypeFor[[]string](), keys.Words: reflect.TypeFor[[]string](),
	}
	seen := map[string]string{}
	for _, k := range keys.All() {
		for _, name := range []string{k.Name, "--" + k.Flag(), k.Env()} {
			if other, twice := seen[name]; twice {
				t.Errorf("%s is of %s and of %s", name, other, k.Name)
			}
			seen[name] = k.Name
		}
		if k.Help == "" || strings.Contains(k.Help, "\n") || strings.HasSuffix(k.Help, ".") {
			t.Errorf("%s: help %q", k.Name, k.Help)
		}
		if leaning.MatchString(k.Help) { // help sorts flags by name
			t.Errorf("%s: help %q needs that of another key to be understood", k.Name, k.Help)
		}
		if forAgents(k.Env()) {
			t.Errorf("%s is set by ralph for its agents", k.Env())
		}
		if want, ok := kinds[k.Kind]; ok && reflect.TypeOf(k.Default) != want {
			t.Errorf("%s: a %s cannot have the default %v", k.Name, k.Kind, k.Default)
		}
		if err := k.Verify(k.Default, k.Choices); err != nil {
			t.Errorf("%s: default: %v", k.Name, err)
		}
	}
}

var update = flag.Bool("update", false, "write config.example.yaml")

// TestExampleFile checks that config.example.yaml has every key with its default, one per line.
func TestExampleFile(t *testing.T) {
	t.Parallel()
	const path = "../../../config.example.yaml"
	if *update {
		if err := os.WriteFile(path, []byte(example()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), string(got)); diff != "" {
		t.Errorf("config.example.yaml is not what the table says; run: make example\n%s", diff)
	}
}

func TestExampleIsTheDefaults(t *testing.T) {
	t.Parallel()
	want, root, err := setup{}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	got, other, err := setup{repo: example()}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	got.Config.LocalDir = strings.Replace(got.Config.LocalDir, other, root, 1)
	if diff := cmp.Diff(want.Config, got.Config); diff != "" {
		t.Error(diff)
	}
	for _, e := range got.Entries() {
		if k, _ := keys.Lookup(e.Key); e.Source != FromRepository && k.Guard != keys.Own {
			t.Errorf("%s comes from %s: it is not in the example", e.Key, e.Origin)
		}
	}
}
