//! Sandboxes that were created, or are to be.

use async_trait::async_trait;
use outlast_core::run::ClaimToken;
use outlast_core::{InstanceId, OwnerId};
use outlast_store::{
    BeginReclaim, Instance, InstanceError, Instances, ListInstances, ReclaimEnd, ReclaimError, StoreError,
};

use super::SqliteStore;
use crate::sql;
use crate::writer::Urgency::Urgent;

#[async_trait]
impl Instances for SqliteStore {
    async fn create_instance(&self, token: &ClaimToken, instance: &Instance) -> Result<(), InstanceError> {
        let (token, instance) = (token.clone(), instance.clone());
        self.write(Urgent, move |tx| sql::create_instance(tx, &token, &instance)).await
    }

    async fn use_instance(&self, token: &ClaimToken, instance: &InstanceId) -> Result<(), InstanceError> {
        let (token, instance) = (token.clone(), instance.clone());
        self.write(Urgent, move |tx| sql::use_instance(tx, &token, &instance)).await
    }

    async fn instance_created(&self, instance: &InstanceId) -> Result<(), InstanceError> {
        let instance = instance.clone();
        self.write(Urgent, move |tx| sql::instance_created(tx, &instance)).await
    }

    async fn begin_reclaim(&self, request: &BeginReclaim) -> Result<Instance, ReclaimError> {
        let request = request.clone();
        self.write(Urgent, move |tx| sql::begin_reclaim(tx, &request)).await
    }

    async fn end_reclaim(
        &self,
        instance: &InstanceId,
        owner: &OwnerId,
        end: &ReclaimEnd,
    ) -> Result<(), StoreError> {
        let (instance, owner, end) = (instance.clone(), owner.clone(), end.clone());
        self.write(Urgent, move |tx| sql::end_reclaim(tx, &instance, &owner, &end).map(Ok)).await
    }

    async fn list_instances(&self, query: &ListInstances) -> Result<Vec<Instance>, StoreError> {
        let query = query.clone();
        self.view(move |view| sql::list_instances(view, &query)).await
    }

    async fn instance(&self, instance: &InstanceId) -> Result<Option<Instance>, StoreError> {
        let instance = instance.clone();
        self.view(move |view| sql::instance(view, &instance)).await
    }

    async fn find_instance(
        &self,
        sandbox_key: &str,
        machine: Option<&str>,
    ) -> Result<Option<Instance>, StoreError> {
        let (key, machine) = (sandbox_key.to_owned(), machine.map(ToOwned::to_owned));
        self.view(move |view| sql::find_instance(view, &key, machine.as_deref())).await
    }
}
