package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// audited opens an audit log, and returns what tells it of a request for an object.
func audited(t *testing.T, name string, log io.Writer) (a *auditLog, request func(name string)) {
	t.Helper()
	o := &Options{AuditLog: name}
	a, err := o.openAudit(slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	return a, func(name string) {
		a.request(t.Context(), serve.Audited{Request: &serve.Request{Verb: "get", Resource: "widgets", Name: name}, Code: 200})
	}
}

// contents returns what the lines of a file say: names of objects, or how many are lost.
func contents(t *testing.T, file string) (all []any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var l map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &l), line)
		if lost, some := l["lost"]; some {
			all = append(all, lost)
		} else {
			all = append(all, l["name"])
		}
	}
	return all
}

// isOpen reports whether this process has a file open.
func isOpen(t *testing.T, file string) bool {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		target, _ := os.Readlink("/proc/self/fd/" + d.Name())
		return target == file
	})
}

// A file that was renamed keeps what it has, and another one gets what follows; one that was truncated
// begins again.
func TestAudit_IsRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "audit")
		a, request := audited(t, file, io.Discard)
		tell := func(name string) {
			request(name)
			time.Sleep(2 * auditLook)
			synctest.Wait()
		}
		tell("a")
		require.NoError(t, os.Rename(file, file+".1"))
		tell("b")
		tell("c")
		require.Equal(t, []any{"a"}, contents(t, file+".1"))
		for _, name := range []string{file, file + ".1"} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "names of users and objects are not for all")
		}
		require.Equal(t, []any{"b", "c"}, contents(t, file))
		require.False(t, isOpen(t, file+".1"), "its space is free when it is removed")
		require.NoError(t, os.Truncate(file, 0))
		tell("d")
		require.Equal(t, []any{"d"}, contents(t, file))
		require.NoError(t, os.Rename(file, file+".2"))
		require.NoError(t, os.WriteFile(file, nil, 0o600)) // as by create of logrotate
		tell("x")
		require.Equal(t, []any{"d"}, contents(t, file+".2"))
		require.Equal(t, []any{"x"}, contents(t, file))
		require.NoError(t, os.Remove(file))
		request("e") // which waits while it is closed
		require.NoError(t, a.close())
		require.Equal(t, []any{"e"}, contents(t, file))
		require.False(t, isOpen(t, file))
	})
}

// A look costs a call of the system, which not each line can have.
func TestAudit_LooksOnceInAWhileWhetherItsFileWasRenamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "audit")
		a, request := audited(t, file, io.Discard)
		request("a")
		synctest.Wait()
		require.NoError(t, os.Rename(file, file+".1"))
		time.Sleep(auditLook - time.Nanosecond)
		request("b")
		synctest.Wait()
		require.Equal(t, []any{"a", "b"}, contents(t, file+".1"))
		time.Sleep(time.Nanosecond)
		request("c")
		require.NoError(t, a.close())
		require.Equal(t, []any{"c"}, contents(t, file))
	})
}

// Where the folder of the file is gone, the server goes on, and ends without an error.
func TestAudit_CountsWhatItHasNoFileFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		require.NoError(t, os.Mkdir(dir, 0o700))
		a, request := audited(t, filepath.Join(dir, "audit"), io.Discard)
		require.NoError(t, os.RemoveAll(dir))
		request("a")
		request("b")
		synctest.Wait()
		require.Equal(t, uint64(2), a.lost.Load())
		require.NoError(t, a.close())
	})
}

// A look that fails does not say that the file has another name.
func TestAudit_KeepsItsFileIfItCannotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		require.NoError(t, os.Mkdir(dir, 0o700))
		a, request := audited(t, filepath.Join(dir, "audit"), io.Discard)
		require.NoError(t, os.Rename(dir, dir+".1"))
		require.NoError(t, os.WriteFile(dir, nil, 0o600))
		request("a")
		require.NoError(t, a.close())
		require.Equal(t, []any{"a"}, contents(t, filepath.Join(dir+".1", "audit")))
	})
}

// A disk may take a part of a line, and then nothing of the next one.
func TestAudit_EndsALineThatAFullDiskHasTorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 50
		file := filepath.Join(t.TempDir(), "audit")
		a, request := audited(t, file, io.Discard)
		free := limitFiles(t, most)
		request("torn")
		request("lost")
		synctest.Wait()
		free()
		request("a")
		synctest.Wait()
		a.lost.Add(3) // which did not fit into memory
		request("b")
		require.NoError(t, a.close())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "\n", string(text[most:most+1]))
		require.NoError(t, os.WriteFile(file, text[most+1:], 0o600))
		require.Equal(t, []any{2.0, "a", 3.0, "b"}, contents(t, file))
	})
}

// What a full disk does not take is counted, in the file, too, when there is space again.
func TestAudit_SaysWhatIsLostOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file, whole := filepath.Join(dir, "audit"), filepath.Join(dir, "whole")
		require.NoError(t, os.Symlink("/dev/full", file))
		var log bytes.Buffer
		a, request := audited(t, file, &log)
		for range 100 {
			request("lost")
		}
		synctest.Wait()
		require.Contains(t, log.String(), "no space left on device")
		require.Equal(t, uint64(100), a.lost.Load())
		require.NoError(t, os.Symlink(whole, file+".new"))
		require.NoError(t, os.Rename(file+".new", file))
		time.Sleep(2 * auditLook)
		request("a")
		request("b")
		require.NoError(t, a.close())
		require.Equal(t, []any{100.0, "a", "b"}, contents(t, whole))
	})
}

// A line that a process had written in part when it was killed does not harm the first one of the
// next process.
func TestAudit_EndsALineThatIsTorn(t *testing.T) {
	for before, kept := range map[string]string{`{"x"`: "{\"x\"\n", "{}\n": "{}\n", "": ""} {
		file := filepath.Join(t.TempDir(), "audit")
		require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
		a, request := audited(t, file, io.Discard)
		request("a")
		request("b")
		require.NoError(t, a.close())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		added, found := strings.CutPrefix(string(text), kept)
		require.True(t, found, "%s", text)
		require.NoError(t, os.WriteFile(file, []byte(added), 0o600))
		require.Equal(t, []any{"a", "b"}, contents(t, file))
	}
}

// A disk that hangs keeps no request waiting, and the lines that wait for it take little memory.
func TestAudit_KeepsNoRequestWaiting(t *testing.T) {
	for _, of := range []struct{ lines, name int }{{2 * maxAuditLines, 1}, {2 * maxAuditBytes / 30_000, 30_000}} {
		t.Run(fmt.Sprintf("%d lines with names of %d bytes", of.lines, of.name), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(file, 0o600))
			pipe, err := os.OpenFile(file, os.O_RDWR, 0)
			require.NoError(t, err)
			a, request := audited(t, file, io.Discard)
			for range of.lines {
				request(strings.Repeat("a", of.name))
			}
			require.NotZero(t, a.lost.Load())
			read := make(chan int, 1)
			go func() {
				n := 0
				for lines := bufio.NewScanner(pipe); lines.Scan() && lines.Text() != "end"; {
					n++
				}
				read <- n
			}()
			require.NoError(t, a.close())
			require.Zero(t, a.bytes.Load())
			_, err = pipe.WriteString("end\n")
			require.NoError(t, err)
			require.NotZero(t, <-read)
			require.NoError(t, pipe.Close())
		})
	}
}
