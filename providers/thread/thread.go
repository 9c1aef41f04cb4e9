// Package thread calls functions of C libraries on threads that give way to others: what computes for long does not keep
// the processor from what is due now.
//
// A thread of Go cannot be made to give way for the length of a call. When the call returns, the thread takes a processor of
// Go while it still gives way, and holds up whatever waits for that; and Linux lets only privileged users undo it.
package thread

/*
#cgo linux LDFLAGS: -lpthread
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { most = 6, relayed = 5, nice_by = 3 };

enum state { idle, called, asks, answered, returned, over };

struct thread {
	pthread_t id;
	pthread_mutex_t mu;
	pthread_cond_t changed;
	enum state state;
	uintptr_t function, args[most], result;
	uintptr_t asked[relayed], answer;
};

static _Thread_local struct thread *self;

static void turn(struct thread *t, enum state to) {
	t->state = to;
	pthread_cond_broadcast(&t->changed);
}

// relay is the callback that has what a library asks answered by the goroutine which called it.
static uintptr_t relay(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) {
	struct thread *t = self;
	pthread_mutex_lock(&t->mu);
	t->asked[0] = a, t->asked[1] = b, t->asked[2] = c, t->asked[3] = d, t->asked[4] = e;
	turn(t, asks);
	while (t->state != answered) pthread_cond_wait(&t->changed, &t->mu);
	turn(t, called);
	uintptr_t answer = t->answer;
	pthread_mutex_unlock(&t->mu);
	return answer;
}

static uintptr_t relay_address(void) { return (uintptr_t)relay; }

typedef uintptr_t (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void *run(void *p) {
	struct thread *t = self = p;
#ifdef __linux__
	setpriority(PRIO_PROCESS, syscall(SYS_gettid), nice_by); // of Linux, where each thread has its own: setpriority(2)
#endif
	pthread_mutex_lock(&t->mu);
	for (;;) {
		while (t->state != called && t->state != over) pthread_cond_wait(&t->changed, &t->mu);
		if (t->state == over) break;
		uintptr_t *a = t->args;
		pthread_mutex_unlock(&t->mu);
		uintptr_t result = ((function)t->function)(a[0], a[1], a[2], a[3], a[4], a[5]);
		pthread_mutex_lock(&t->mu);
		t->result = result;
		turn(t, returned);
	}
	pthread_mutex_unlock(&t->mu);
	return NULL;
}

static struct thread *start(void) {
	struct thread *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	pthread_mutex_init(&t->mu, NULL);
	pthread_cond_init(&t->changed, NULL);
	if (pthread_create(&t->id, NULL, run, t)) {
		free(t);
		return NULL;
	}
	return t;
}

// step has the thread go on from a state, and waits until it asks or has returned.
static int step(struct thread *t, enum state from) {
	pthread_mutex_lock(&t->mu);
	turn(t, from);
	while (t->state != asks && t->state != returned) pthread_cond_wait(&t->changed, &t->mu);
	int asking = t->state == asks;
	pthread_mutex_unlock(&t->mu);
	return asking;
}

static void end(struct thread *t) {
	pthread_mutex_lock(&t->mu);
	turn(t, over);
	pthread_mutex_unlock(&t->mu);
	pthread_join(t->id, NULL);
	pthread_mutex_destroy(&t->mu);
	pthread_cond_destroy(&t->changed);
	free(t);
}
*/
import "C"

import (
	"errors"
	"fmt"
)

const (
	mostArgs = C.most
	// Asked is the number of arguments that a callback hands on.
	Asked = C.relayed
)

// Thread is one thread. It is for one goroutine at a time.
type Thread struct {
	c *C.struct_thread
}

// New starts a thread, which waits until Close. On Linux it has half the weight of others (nice(1), 3): it gives way to what is due, and other programs of a busy machine do not starve it. Elsewhere it is as any other.
func New() (*Thread, error) {
	c := C.start()
	if c == nil {
		return nil, errors.New("no thread could be started")
	}
	return &Thread{c}, nil
}

// Call calls the C function at an address with at most six integers or pointers, waits, and returns what it returns. What
// pointers lead to must be pinned ([runtime.Pinner]) if it is memory of Go. When the function calls [Callback], answer is given
// the arguments, on the goroutine of Call; it may be nil for functions that do not. When it panics, the callbacks that are left are
// answered -1, and Call panics when the function has returned.
func (t *Thread) Call(function uintptr, answer func(asked [Asked]uintptr) uintptr, args ...uintptr) uintptr {
	if len(args) > mostArgs {
		panic(fmt.Sprintf("thread: %d arguments, at most %d", len(args), mostArgs))
	}
	t.c.function = C.uintptr_t(function)
	t.c.args = [mostArgs]C.uintptr_t{}
	for i, a := range args {
		t.c.args[i] = C.uintptr_t(a)
	}
	defer func() { // after a panic of answer
		for t.c.state == C.asks {
			t.c.answer = ^C.uintptr_t(0)
			C.step(t.c, C.answered)
		}
	}()
	for from := uint32(C.called); C.step(t.c, from) != 0; from = C.answered {
		var asked [Asked]uintptr
		for i := range asked {
			asked[i] = uintptr(t.c.asked[i])
		}
		t.c.answer = C.uintptr_t(answer(asked))
	}
	return uintptr(t.c.result)
}

// Close ends the thread and waits for its end.
func (t *Thread) Close() { C.end(t.c) }

// Callback returns the address of a C function of at most five integers or pointers that returns an integer: see
// [Thread.Call]. It may be called by what a Thread runs and by nothing else.
func Callback() uintptr { return uintptr(C.relay_address()) }
