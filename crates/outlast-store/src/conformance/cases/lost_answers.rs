//! A write whose answer never came is settled by the same write again: it has taken effect once, and its answer says what
//! is so.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use outlast_core::Seq;
use outlast_core::run::{CancelReason, Phase, Purpose, Status};
use outlast_core::transcript::Role;

use crate::NewMessage;
use crate::conformance::world::{
    Host, LEASE, World, append, completion, instance, instance_id, is_terminal, run_id, said, text_event,
};
use crate::{Accept, Accepted, Append, CancelOutcome, ClaimError, Entropy, SystemEntropy};

/// Begins the work and gives it up after so many steps, whatever has become of it by then.
async fn given_up<T>(steps: usize, work: impl Future<Output = T>) {
    let mut work = pin!(work);
    let mut left = steps;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        match work.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(()),
            // Asked again at once: how far it has come by then differs from time to time, and every place is right.
            Poll::Pending => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await;
}

/// How far work is let come before it is given up: not at all, and from a first step to, for every backend, its end.
const STEPS: [usize; 8] = [0, 1, 2, 3, 5, 50, 5_000, usize::MAX];

/// A run with its claim, for each of the places at which work is given up.
async fn each(host: &Host, mut then: impl AsyncFnMut(usize, String)) {
    for (n, steps) in STEPS.into_iter().enumerate() {
        let run = format!("r{n}");
        host.accept(&run, &run).await;
        then(steps, run).await;
    }
}

/// The claim that the run's producer was given is lost with the answer; here it is taken from a fresh grant.
async fn claimed(world: &World, host: &Host, run: &str) -> outlast_core::run::ClaimToken {
    world.pass(LEASE).await;
    host.claim(run, Purpose::Drive).await.expect("the lease has run out").token
}

/// The same append again: its events are there once.
pub async fn of_an_append(world: World) {
    let a = world.host("a").await;
    each(&a, async |steps, run| {
        let token = claimed(&world, &a, &run).await;
        let request = Append {
            messages: vec![NewMessage::new(2, said("m", Role::Assistant, "hello"))],
            ..append(&token, 1, &["x", "y"])
        };
        given_up(steps, a.store.append(request.clone())).await;
        given_up(steps, a.store.append(request.clone())).await;
        assert_eq!(a.store.append(request).await.expect("settled").tail, Seq(3), "{steps}");
        assert_eq!(a.log(&run).await.len(), 3);
        a.append(&token, 3, &["z"]).await.expect("written");
    })
    .await;
}

/// The same word that the agent is launched again: it is there once.
pub async fn of_a_launch(world: World) {
    let a = world.host("a").await;
    each(&a, async |steps, run| {
        let token = claimed(&world, &a, &run).await;
        let events = vec![text_event("launched")];
        given_up(steps, a.store.launched(&token, Seq(1), events.clone())).await;
        assert_eq!(a.store.launched(&token, Seq(1), events).await.expect("settled").tail, Seq(2), "{steps}");
        assert_eq!((a.log(&run).await.len(), a.record(&run).await.phase), (2, Phase::Launched));
    })
    .await;
}

/// The same end again: the run has ended once, and the answer is its record.
pub async fn of_an_end(world: World) {
    let a = world.host("a").await;
    each(&a, async |steps, run| {
        let token = claimed(&world, &a, &run).await;
        let finish = completion(&token, 1);
        given_up(steps, a.store.finish(finish.clone())).await;
        let finished = a.store.finish(finish).await.expect("settled").run;
        assert_eq!((finished.status, &finished), (Status::Completed, &a.record(&run).await), "{steps}");
        let log = a.log(&run).await;
        assert_eq!((log.len(), log.iter().filter(|event| is_terminal(event)).count()), (3, 1));
    })
    .await;
}

/// Another request for the same is answered with its run, new or not. A claim whose grant nobody got to know of is given back or
/// runs out, whatever else its owner holds and renews.
pub async fn of_an_acceptance(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let kept = a.accept("kept", "kept").await.token;
    for (n, steps) in STEPS.into_iter().enumerate() {
        let run = format!("r{n}");
        let request = Accept {
            messages: NewMessage::input(vec![said("u", Role::User, "Hi")]),
            ..a.request(&run, &run)
        };
        given_up(steps, a.store.accept(request.clone())).await;
        let another = Accept { nonce: SystemEntropy.nonce(), ..request };
        let token = match a.store.accept(another).await {
            Ok(Accepted::New(claimed)) => Some(claimed.token),
            Ok(Accepted::Existing(found)) => {
                assert_eq!(found.run_id, run_id(&run));
                None
            }
            Err(error) => panic!("{steps}: {error:?}"),
        };
        assert_eq!(a.log(&run).await.len(), 1);
        assert_eq!(a.store.run_messages(&a.tenant, &run_id(&run)).await.expect("messages").len(), 1);
        let mut held = vec![&kept];
        held.extend(&token);
        world.pass(LEASE / 2).await;
        assert_eq!(a.renew(&held).await.len(), held.len());
        world.pass(LEASE / 2).await;
        assert_eq!(b.claim(&run, Purpose::Drive).await.is_ok(), token.is_none(), "{steps}");
    }
}

/// Another claim is granted, or refused because it is held. What nobody got to know of is given back or runs out.
pub async fn of_a_claim(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let kept = a.accept("kept", "kept").await.token;
    each(&b, async |steps, run| {
        world.pass(LEASE).await;
        given_up(steps, a.claim(&run, Purpose::Drive)).await;
        let token = match a.claim(&run, Purpose::Drive).await {
            Ok(claimed) => Some(claimed.token),
            Err(ClaimError::Refused(_)) => None,
            Err(error) => panic!("{steps}: {error:?}"),
        };
        let mut held = vec![&kept];
        held.extend(&token);
        world.pass(LEASE / 2).await;
        assert_eq!(a.renew(&held).await.len(), held.len());
        world.pass(LEASE / 2).await;
        assert_eq!(b.claim(&run, Purpose::Drive).await.is_ok(), token.is_none(), "{steps}");
        assert_eq!(a.log(&run).await.len(), 1);
    })
    .await;
}

/// The same intent again: there is one instance, and the run is bound to it.
pub async fn of_an_intent(world: World) {
    let a = world.host("a").await;
    each(&a, async |steps, run| {
        let token = claimed(&world, &a, &run).await;
        let wanted = instance(&run, &run, None, 1);
        given_up(steps, a.store.create_instance(&token, &wanted)).await;
        a.store.create_instance(&token, &wanted).await.expect("settled");
        assert_eq!(a.store.instance(&wanted.instance_id).await.expect("answered"), Some(wanted.clone()));
        let record = a.record(&run).await;
        assert_eq!((record.phase, record.instance_id), (Phase::Launching, Some(instance_id(&run))));
        given_up(steps, a.store.instance_created(&wanted.instance_id)).await;
        a.store.instance_created(&wanted.instance_id).await.expect("settled");
        given_up(steps, a.store.use_instance(&token, &wanted.instance_id)).await;
        a.store.use_instance(&token, &wanted.instance_id).await.expect("settled");
    })
    .await;
}

/// The same wish to stop again is on the record; a claim given back again is given back.
pub async fn of_a_cancel_and_a_release(world: World) {
    let a = world.host("a").await;
    each(&a, async |steps, run| {
        let token = claimed(&world, &a, &run).await;
        let id = run_id(&run);
        given_up(steps, a.store.request_cancel(&a.tenant, &id, CancelReason::User, None)).await;
        let outcome =
            a.store.request_cancel(&a.tenant, &id, CancelReason::User, None).await.expect("settled");
        assert!(matches!(outcome, CancelOutcome::Recorded(_) | CancelOutcome::AlreadyRequested(_)));
        assert_eq!(a.record(&run).await.cancel_requested.expect("on the record").reason, CancelReason::User);
        given_up(steps, a.store.release(&token)).await;
        a.store.release(&token).await.expect("settled");
        assert_eq!(a.record(&run).await.driver, None);
    })
    .await;
}
