// SPDX-License-Identifier: Apache-2.0

// Compiles checks whether a package compiles for another system: compiles SYSTEM/MACHINE FOLDER. Of imported packages it only
// reads the declarations, from their source, because building the standard library for that system would take a minute.
package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

func check(folder string) error {
	found, err := build.Default.ImportDir(folder, 0)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil), Sizes: types.SizesFor("gc", build.Default.GOARCH)}
	_, err = config.Check(found.Name, files, parsed, nil)
	return err
}

func main() {
	build.Default.GOOS, build.Default.GOARCH, _ = strings.Cut(os.Args[1], "/")
	build.Default.CgoEnabled = false
	if err := check(os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
