package oauth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// maxFile limits the bytes read from a file.
const maxFile = 1 << 20

// folder keeps tokens in files, which are replaced atomically and locked against other processes.
type folder string

func (f folder) where(server string) string { return filepath.Join(string(f), server+".json") }

func (f folder) read(server string) ([]byte, error) {
	text, err := atomicfile.Read(f.where(server), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (f folder) write(_ context.Context, server string, text []byte) error {
	return atomicfile.Write(f.where(server), text)
}

func (f folder) remove(_ context.Context, server string) error {
	if err := os.Remove(f.where(server)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f folder) lock(ctx context.Context, server string) (context.Context, func(), error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, nil, err
	}
	unlock, err := atomicfile.Lock(ctx, f.where(server)+".lock")
	return ctx, unlock, err
}

func (f folder) look(server string) version {
	info, err := os.Stat(f.where(server))
	if err != nil {
		return version{}
	}
	return version{file: info}
}

func (f folder) ofCallers() (keeper, string) { return folder(filepath.Join(string(f), "callers")), "." }

func (f folder) names(prefix string) (names []string) {
	files, _ := os.ReadDir(string(f)) // without the folder there are none
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".json"); ok && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}
