/*
 * The life of two calls of one run, shared by two replicas over one row of a store.
 *
 * Spin walks through every order in which clients, people, timers, replicas, crashes and false expiries can meet.
 * `proofs/README.md` says what stands for what; `proofs/spin.py` runs it. Each BUG_... switch plants one error that
 * spin must find.
 *
 * The row has a version (its number of events) and an epoch (which holder may commit). Both only rise, and all that
 * anybody does with what it has read of them is to compare it with the row. So the model keeps the answers of those
 * comparisons and not the numbers: a bit of `fresh` says "the row is as I read it", a bit of `mine` says "the epoch
 * is still the one I hold it under". It is the same protocol in far fewer states.
 */

#ifndef CRASHES
#define CRASHES 1  /* how often a replica may die */
#endif
#ifndef FREEZES
#define FREEZES 1  /* how often a living holder may be taken for dead */
#endif
#ifndef PEOPLE
#define PEOPLE 1  /* how many people decide at the same time */
#endif
/* The second call: at a client, or with SECOND_ON_SERVER an idempotent one on the server. */
#ifdef SECOND_ON_SERVER
#define AT_SERVER 1
#else
#define AT_SERVER 0
#endif

mtype:life = { ready, running, waiting, ended };
mtype:phase = { asking, calling, closing, done };
mtype:call = { none, asked, complete, executing, settled };
mtype:job = { idle, enter, hand };

/* Arguments, named by their hash. */
#define WRITTEN 1  /* what the model wrote */
#define CHANGED 2  /* what somebody put in their place */
#define EDITED  3  /* what a person made of them */
#define INVALID 4  /* what a person made of them, and the schema refuses */

/* Who has read the row and decided something: a bit each, so that two of one kind can be under way. */
#define ANSWERS        1
#define ANSWERS_AGAIN  2
#define SAYS_OTHERWISE 4
#define CANCELS_FIRST  8
#define CANCELS_SECOND 16
#define FINDS_FIRST_LATE  32
#define FINDS_SECOND_LATE 64
#define INTRUDES       128
#define SAYS_YES       256     /* these four for each person */
#define SAYS_EDITED    512
#define SAYS_INVALID   1024
#define SAYS_NO        2048
#define REQUESTS       65535
#define TASK(n)        (65536 << (n))

#define BIT(n)  (1 << (n))
#define SLEEPER 2  /* the place of a task whose replica was taken for dead */

/* Requests whose update does not ask whether the row is still as they read it. */
#if defined(BUG_CHECK_THEN_SET)
#define CARELESS REQUESTS
#elif defined(BUG_TIMEOUT_OVERWRITES)
#define CARELESS (FINDS_FIRST_LATE | FINDS_SECOND_LATE)
#else
#define CARELESS 0
#endif

/* The row: survives everything. A running run is held; no other is. */
mtype:life state = ready;
mtype:phase phase = asking;
mtype:call first = none;        /* `once`, on the server, needs an approval */
byte arguments = WRITTEN;
byte approved = 0;              /* the hash that the approval is bound to */
mtype:call second = none;
byte answer = 0;                /* what the client said; none if the second call ended otherwise */
byte attempt = 0;               /* of the second call */
bool limited = false;           /* one server call at a time */

/* Time: whether there is an end, and whether it has come. */
bool expires = false;
bool expired = false;           /* the approval's */
bool limit = false;
bool due = false;               /* the client call's */

/* What the replicas have in memory: a task for the run, and requests. */
typedef Task {
  bit recover;
  bit ask;
  mtype:job first;
  mtype:job second;
  byte attempt
};
Task task[3];
byte on = 0;                    /* which tasks there are */
byte mine = 0;                  /* which of them hold the epoch of the row */
int fresh = 0;                  /* who has read the row as it is */
byte frozen = 0;                /* the replica of the sleeping task */
bool over = false;              /* nobody comes any more */
byte crashes = CRASHES;
byte freezes = FREEZES;

/* What is only there to be asserted. */
byte holder = 0;                /* the task that in truth holds the run */
byte told = 0;                  /* the answer that was acknowledged */
byte said = 0;                  /* arguments that a person said yes to, once that is stored */
byte bodies = 0;                /* how often the body of the first call was entered */

#define WAITS (phase == calling && first != executing && !(AT_SERVER && second == executing))

/* --- What the core decides --- */

/* What nobody asks for any more goes with the outcome: equal states are then seen as equal. */
inline settle_first() {
  assert(first != settled);
  first = settled;
  arguments = 0;
  approved = 0;
  said = 0;
  expired = false
}

inline settle_second(value) {
  assert(second != settled);
  second = settled;
  answer = value;
  due = false;
  attempt = 0;
  assert(!told || answer == told)
}

/* After every event: what may run is dispatched, and when all calls have ended the model is asked again. */
inline advance() {
  if
  :: phase == calling && first == complete && !(limited && second == executing) ->
     if
#ifndef BUG_HASH_NOT_CHECKED_AT_DISPATCH
     :: approved != arguments -> settle_first()
#endif
     :: else ->
        assert(said & BIT(arguments));
        assert(arguments != INVALID);
        first = executing
     fi
  :: else
  fi;
  if
  :: phase == calling && first == settled && second == settled -> phase = closing
  :: else
  fi
}

/* --- What a commit does to the row and to the memory of who commits --- */

inline forget(i) {
  on = on & ~BIT(i);
  mine = mine & ~BIT(i);
  fresh = fresh & ~TASK(i);
  task[i].recover = 0;
  task[i].ask = 0;
  task[i].first = idle;
  task[i].second = idle;
  task[i].attempt = 0
}

/* The task of replica `r` sleeps on beside whatever that replica does next. */
inline put_to_sleep(r) {
  task[SLEEPER].recover = task[r].recover;
  task[SLEEPER].ask = task[r].ask;
  task[SLEEPER].first = task[r].first;
  task[SLEEPER].second = task[r].second;
  task[SLEEPER].attempt = task[r].attempt;
  on = on | BIT(SLEEPER);
  mine = mine | ((mine & BIT(r)) -> BIT(SLEEPER) : 0);
  fresh = fresh | ((fresh & TASK(r)) -> TASK(SLEEPER) : 0);
  holder = ((holder & BIT(r)) -> BIT(SLEEPER) : holder);
  frozen = r;
  forget(r)
}

inline raise_epoch(r) {
#ifdef BUG_EPOCH_NOT_RAISED
  mine = mine | BIT(r);
#else
  mine = BIT(r);
  fresh = fresh & ~(REQUESTS & ~CARELESS);
#endif
  fresh = fresh | TASK(r);
  on = on | BIT(r);
  holder = BIT(r)
}

/* What the run, as it is now, asks of the task that holds it and has not been done by it. */
inline take_jobs(i) {
  if
  :: phase == asking || phase == closing -> task[i].ask = 1
  :: else
  fi;
  if
  :: first == executing && task[i].first == idle -> task[i].first = enter
  :: first != executing -> task[i].first = idle
  :: else
  fi;
#ifdef SECOND_ON_SERVER
  if
  :: second == executing && task[i].second == idle -> task[i].second = enter; task[i].attempt = attempt
  :: second != executing -> task[i].second = idle; task[i].attempt = 0
  :: else
  fi
#else
  skip
#endif
}

/* A request's event is in: whoever makes a waiting run go on holds it from now on, with a new epoch. */
inline committed_by_request(r) {
  fresh = fresh & CARELESS;
  advance();
  if
  :: state == waiting && !WAITS ->
     if
     :: (on & BIT(r)) && !(on & BIT(SLEEPER)) -> put_to_sleep(r)
     :: (on & BIT(r)) && (on & BIT(SLEEPER)) -> forget(r)
     :: else
     fi;
     state = running;
     raise_epoch(r);
     take_jobs(r)
  :: state == running && WAITS -> state = waiting; holder = 0
  :: else /* somebody holds it, or will claim it */
  fi
}

/* A holder's event is in. */
inline committed_by_task(i) {
  assert(holder & BIT(i));
  fresh = (fresh & CARELESS) | TASK(i);
  advance();
  if
  :: phase == done ->
     assert(first == settled && second == settled);
     state = ended;
     holder = 0;
     forget(i)
  :: WAITS -> state = waiting; holder = 0; forget(i)
  :: else -> state = running; take_jobs(i)
  fi
}

/* --- Replicas --- */

#ifdef BUG_COMMIT_WITHOUT_EPOCH
#define HELD(i) 1
#else
#define HELD(i) (mine & BIT(i))
#endif
#define COMMITS(i) ((fresh & TASK(i)) && HELD(i))

inline enter_first() {
  assert(first == executing || first == settled);
  bodies++;
  assert(bodies == 1)
}

/* Task 0 and 1 are the replicas'. Task 2 is one whose replica was taken for dead; it wakes up whenever it likes. */
proctype Replica(byte i) {
#ifdef BUG_PARK_WITHOUT_VERSION
  bit waitsForSecond = 0;  /* as it was when the task last saw the row */
#endif
end:
  do
  :: d_step {
       i != SLEEPER && state == ready && !(on & BIT(i)) ->
       state = running;
       raise_epoch(i);
       task[i].recover = 1
     }
  :: d_step {
       (on & BIT(i)) && task[i].recover && COMMITS(i) ->
       task[i].recover = 0;
       if
       :: phase == calling && first == executing ->
#ifdef BUG_ONCE_DISPATCHED_AGAIN
          task[i].first = enter
#else
          settle_first()
#endif
       :: else
       fi;
#ifdef SECOND_ON_SERVER
       if
       :: phase == calling && second == executing -> attempt++
       :: else
       fi;
#endif
       committed_by_task(i)
     }
  :: d_step {
       (on & BIT(i)) && task[i].ask && COMMITS(i) ->
       task[i].ask = 0;
       if
       :: phase == asking ->
          phase = calling;
          first = asked;
          second = executing;
          attempt = 1
       :: else ->
          assert(phase == closing);
          phase = done
       fi;
       committed_by_task(i)
     }
  :: d_step {
       (on & BIT(i)) && task[i].first == enter ->
       enter_first();
       task[i].first = hand;
#ifdef BUG_PARK_WITHOUT_VERSION
       waitsForSecond = (second != settled)
#endif
     }
  :: d_step {
       (on & BIT(i)) && task[i].first == hand && COMMITS(i) ->
       assert(first == executing);
       task[i].first = idle;
       settle_first();
       committed_by_task(i)
     }
#ifdef BUG_PARK_WITHOUT_VERSION
  :: d_step {
       (on & BIT(i)) && task[i].first == hand && waitsForSecond && HELD(i) && !COMMITS(i) && first == executing ->
       settle_first();
       fresh = fresh & CARELESS;
       state = waiting;
       holder = 0;
       forget(i)
     }
#endif
#ifdef SECOND_ON_SERVER
  :: d_step {
       (on & BIT(i)) && task[i].second == enter ->
       task[i].second = hand
     }
  :: d_step {
       (on & BIT(i)) && task[i].second == hand && COMMITS(i) ->
       assert(second == executing && task[i].attempt == attempt);
       task[i].second = idle;
       task[i].attempt = 0;
       settle_second(0);
       committed_by_task(i)
     }
#endif
  /* The update met no row: another epoch means fenced, another version means that somebody else's event is in. */
  :: d_step {
       (on & BIT(i)) && !COMMITS(i) ->
       if
       :: !HELD(i) || state == waiting || state == ended -> forget(i)
       :: else ->
          fresh = fresh | TASK(i);
          if
          :: task[i].recover /* what is there is looked at when that is in */
#ifdef BUG_FOREIGN_EFFECTS_FORGOTTEN
          :: !task[i].recover && first != executing -> task[i].first = idle
#else
          :: !task[i].recover -> take_jobs(i)
#endif
          :: else
          fi
       fi
     }
  od
}

/* Replicas die, and living ones are taken for dead. Whoever still sleeps in the memory of a replica dies with it. */
proctype Trouble() {
  byte r;
end:
  do
  :: atomic {
       crashes > 0 ->
       crashes--;
       if
       :: r = 0
       :: r = 1
       fi;
       d_step {
         holder = holder & ~BIT(r);
         forget(r);
         if
         :: (on & BIT(SLEEPER)) && frozen == r -> holder = holder & ~BIT(SLEEPER); forget(SLEEPER); frozen = 0
         :: else
         fi;
         r = 0
       }
     }
  :: d_step {
       freezes > 0 && state == running && (holder & BIT(0)) && !(on & BIT(SLEEPER)) ->
       freezes--;
       put_to_sleep(0);
       state = ready
     }
  :: d_step {
       freezes > 0 && state == running && (holder & BIT(1)) && !(on & BIT(SLEEPER)) ->
       freezes--;
       put_to_sleep(1);
       state = ready
     }
  :: d_step {
       state == running && !holder ->
       state = ready
     }
  od
}

/*
 * --- Requests: read, decide, conditional update, and only then a reply. ---
 *
 * Everybody may come at any time and as often as he likes, until nobody comes any more. What is refused changes
 * nothing, so only what the core would take is written down here. A request whose row has changed forgets what it had
 * decided and reads again. A crash before the commit is a request that never came; after it, the reply is missing.
 * So which replica it came to matters only at the commit.
 */

/* Reads the row and decides, as long as the row then lasts. */
#define DECIDES(decision) !over && !(fresh & (decision))

inline commits(decision) {
  fresh = fresh & ~(decision);
  if
  :: r = 0
  :: r = 1
  fi
}

#ifndef SECOND_ON_SERVER
/* The client whose call it is. What is committed counts as acknowledged at once: that is the strictest. */
proctype Client() {
  byte r;
end:
  do
  :: d_step {
       DECIDES(ANSWERS) && second == executing ->
       fresh = fresh | ANSWERS;
#ifdef BUG_ACKNOWLEDGED_BEFORE_COMMIT
       told = 1
#endif
     }
  :: d_step {
       DECIDES(ANSWERS_AGAIN) && second == executing ->
       fresh = fresh | ANSWERS_AGAIN
     }
  :: d_step {
       DECIDES(SAYS_OTHERWISE) && second == executing ->
       fresh = fresh | SAYS_OTHERWISE
     }
  :: atomic {
       (fresh & ANSWERS) ->
       commits(ANSWERS);
       d_step { settle_second(1); told = 1; committed_by_request(r); r = 0 }
     }
  :: atomic {
       (fresh & ANSWERS_AGAIN) ->
       commits(ANSWERS_AGAIN);
       d_step { settle_second(1); told = 1; committed_by_request(r); r = 0 }
     }
  :: atomic {
       (fresh & SAYS_OTHERWISE) ->
       commits(SAYS_OTHERWISE);
       d_step { settle_second(2); told = 2; committed_by_request(r); r = 0 }
     }
  od
}
#endif

#ifdef BUG_APPROVAL_USED_TWICE
#define UNDECIDED(wanted) (first == asked || (approved && approved == wanted))
#else
#define UNDECIDED(wanted) (first == asked)
#endif
#ifdef BUG_APPROVAL_AFTER_EXPIRY
#define IN_TIME true
#else
#define IN_TIME (!expired)
#endif
#ifdef BUG_APPROVAL_NOT_BOUND
#define AS_SHOWN true
#else
#define AS_SHOWN (shown == arguments)
#endif

inline approves(wanted) {
  d_step {
    assert(first == asked && !approved);
    assert(!late);
    said = said | BIT(wanted);
    arguments = (wanted == shown -> arguments : wanted);
    approved = arguments;
    first = complete;
    expired = false;
    committed_by_request(r);
    r = 0
  }
}

/* Says yes to the arguments that were shown, or to others instead, or no. */
proctype Person(byte n) {
  byte r;
  byte shown;
  bit late;
#define MINE(decision) ((decision) << (4 * n))
end:
  do
  :: !shown && first == asked && !over -> shown = arguments
  :: d_step {
       DECIDES(MINE(SAYS_YES)) && shown && UNDECIDED(shown) && IN_TIME && AS_SHOWN ->
       fresh = fresh | MINE(SAYS_YES);
       late = expired;
#ifdef BUG_DISPATCHED_BEFORE_COMMIT
       if
       :: state == waiting -> enter_first()
       :: else
       fi
#endif
     }
  :: d_step {
       DECIDES(MINE(SAYS_EDITED)) && shown && UNDECIDED(EDITED) && IN_TIME && AS_SHOWN ->
       fresh = fresh | MINE(SAYS_EDITED);
       late = expired
     }
  :: d_step {
       DECIDES(MINE(SAYS_NO)) && shown && first == asked && IN_TIME ->
       fresh = fresh | MINE(SAYS_NO)
     }
  :: atomic {
       (fresh & MINE(SAYS_YES)) ->
       commits(MINE(SAYS_YES));
       approves(shown)
     }
  :: atomic {
       (fresh & MINE(SAYS_EDITED)) ->
       commits(MINE(SAYS_EDITED));
       approves(EDITED)
     }
  :: atomic {
       (fresh & MINE(SAYS_NO)) ->
       commits(MINE(SAYS_NO));
       d_step { settle_first(); committed_by_request(r); r = 0 }
     }
#ifdef BUG_EDIT_NOT_VALIDATED
  :: d_step {
       DECIDES(MINE(SAYS_INVALID)) && shown && UNDECIDED(INVALID) && IN_TIME && AS_SHOWN ->
       fresh = fresh | MINE(SAYS_INVALID)
     }
  :: atomic {
       (fresh & MINE(SAYS_INVALID)) ->
       commits(MINE(SAYS_INVALID));
       approves(INVALID)
     }
#endif
  od
}

/* The owner calls calls off. */
proctype Canceller() {
  byte r;
end:
  do
  :: d_step {
       DECIDES(CANCELS_FIRST) && first != none && first != settled ->
       fresh = fresh | CANCELS_FIRST
     }
  :: d_step {
       DECIDES(CANCELS_SECOND) && second != none && second != settled ->
       fresh = fresh | CANCELS_SECOND
     }
  :: atomic {
       (fresh & CANCELS_FIRST) ->
       commits(CANCELS_FIRST);
       d_step { settle_first(); committed_by_request(r); r = 0 }
     }
  :: atomic {
       (fresh & CANCELS_SECOND) ->
       commits(CANCELS_SECOND);
       d_step { settle_second(0); committed_by_request(r); r = 0 }
     }
  od
}

/* Any replica may look for what is due, also when nobody comes any more. */
proctype Timer() {
  byte r;
end:
  do
  :: expires && first == asked && !expired -> expired = true
  :: d_step {
       !(fresh & FINDS_FIRST_LATE) && expired && first == asked ->
       fresh = fresh | FINDS_FIRST_LATE
     }
  :: atomic {
       (fresh & FINDS_FIRST_LATE) ->
       commits(FINDS_FIRST_LATE);
       d_step { settle_first(); committed_by_request(r); r = 0 }
     }
#ifndef SECOND_ON_SERVER
  :: limit && second == executing && !due -> due = true
  :: d_step {
       !(fresh & FINDS_SECOND_LATE) && due && second == executing ->
       fresh = fresh | FINDS_SECOND_LATE
     }
  :: atomic {
       (fresh & FINDS_SECOND_LATE) ->
       commits(FINDS_SECOND_LATE);
       d_step { settle_second(0); committed_by_request(r); r = 0 }
     }
#endif
  od
}

/*
 * Somebody who is not the owner and has guessed the ids: to him, the calls are unknown. And somebody who puts other
 * arguments into the row while nobody has dispatched them: after they were shown, or after the yes.
 */
proctype Stranger() {
end:
  do
#ifdef BUG_OWNER_NOT_CHECKED
  :: d_step {
       DECIDES(INTRUDES) && (first == asked || second == executing) ->
       fresh = fresh | INTRUDES
     }
  :: (fresh & INTRUDES) -> assert(false) /* his event is in */
#endif
  :: d_step {
       !over && arguments != CHANGED && (first == asked || first == complete) ->
       arguments = CHANGED;
       fresh = fresh & CARELESS
     }
  od
}

/* When nothing can happen any more, the run has ended or waits for somebody who may still come. */
proctype Watch() {
  over = true;
  timeout ->
  assert(
    (state == ended && phase == done && !on) ||
    (state == waiting && phase == calling && !on &&
     ((first == asked && !expires) || (!AT_SERVER && second == executing && !limit)))
  );
  assert(!told || (second == settled && answer == told))
}

/* What must happen somewhere, or the model would say nothing about it: spin is asked to find it. */
#if defined(SEES_AN_ANSWERED_RUN_END_AFTER_ALL_TROUBLE)
#define SIGHT (state == ended && told && !crashes && !freezes)
#elif defined(SEES_A_FENCED_HOLDER_WITH_A_RESULT)
#define SIGHT ((on & BIT(SLEEPER)) && !(mine & BIT(SLEEPER)) && task[SLEEPER].first == hand)
#elif defined(SEES_A_HOLDER_COMMIT_BETWEEN_EXPIRY_AND_CLAIM)
#define SIGHT (state == running && (holder & BIT(SLEEPER)))
#elif defined(SEES_A_ROW_CHANGE_UNDER_ITS_HOLDER)
#define SIGHT (state == running && (on & BIT(0)) && (mine & BIT(0)) && !(fresh & TASK(0)) && task[0].first == hand)
#elif defined(SEES_A_FOREIGN_DISPATCH)
#define SIGHT (state == running && holder == 1 && first == executing && task[0].first == idle && task[0].second == hand)
#elif defined(SEES_AN_APPROVAL_OF_OTHER_ARGUMENTS)
#define SIGHT (first == complete && approved != arguments)
#elif defined(SEES_A_BODY_ENTERED_AND_ITS_HOLDER_GONE)
#define SIGHT (first == executing && bodies && state == ready && !on)
#elif defined(SEES_AN_ANSWER_RACE_THE_DEADLINE)
#define SIGHT ((fresh & ANSWERS) && (fresh & FINDS_SECOND_LATE))
#elif defined(SEES_A_SECOND_ATTEMPT)
#define SIGHT (attempt > 1 && second == executing)
#endif
#ifdef SIGHT
active proctype Sight() {
end:
  SIGHT -> assert(false)
}
#endif

init {
  atomic {
    task[0].first = idle;
    task[0].second = idle;
    task[1].first = idle;
    task[1].second = idle;
    task[2].first = idle;
    task[2].second = idle;
    if
    :: expires = true
    :: true
    fi;
    if
#ifdef SECOND_ON_SERVER
    :: limited = true
#else
    :: limit = true
#endif
    :: true
    fi;
#ifndef SECOND_ON_SERVER
    run Client();
#endif
    run Replica(0);
    run Replica(1);
    run Replica(SLEEPER);
    run Trouble();
    run Person(0);
#if PEOPLE > 1
    run Person(1);
#endif
    run Canceller();
    run Timer();
    run Stranger();
    run Watch()
  }
}
